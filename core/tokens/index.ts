export { addToken, readTokenFile, removeToken } from "./file.ts";
export { ScopeKinds } from "./scopes.ts";
export { presentsToken, TokenStore } from "./store.ts";
export { remoteToken } from "./token_account.ts";

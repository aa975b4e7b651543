export { addToken, readTokenFile, removeToken } from "./file.ts";
export { heldElsewhere } from "./held.ts";
export { scopeForms } from "./scopes.ts";
export { TokenStore } from "./store.ts";

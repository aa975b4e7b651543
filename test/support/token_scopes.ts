/** Kinds of token scopes without a host around them. */
import { ScopeKinds } from "#core/tokens/index.ts";
import { TokenScopes } from "#core/tokens/scopes.ts";
import type { Module, OwnedItem, TokenNeed, TokenScopeItem } from "#core/types.ts";

/** A declaration of a module with this name. */
export const declaredBy = (name: string, item: TokenScopeItem): OwnedItem<TokenScopeItem> => ({
  item,
  owner: { name } as Module,
});

/** The kinds of one module that declares these. */
export function kindsOf(...items: readonly TokenScopeItem[]): ScopeKinds {
  const kinds = new ScopeKinds();
  for (const item of items) kinds.add(declaredBy("example", item));
  return kinds;
}

/** Returns whether a token with the scope alone may do what is needed. */
export const opens = (kinds: ScopeKinds, scope: string, need: TokenNeed) => new TokenScopes([scope], kinds).allow(need);

/** A module that declares these, for hosts that lack the module whose scopes they are. */
export const declaring = (...items: readonly TokenScopeItem[]) => ({
  name: "scopes_of_others",
  load(module: Module) {
    for (const item of items) module.provides("token-scope", item);
  },
});

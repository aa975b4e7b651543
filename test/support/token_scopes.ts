/** Token scopes without a host. */
import { ScopeKinds } from "#core/tokens/index.ts";
import { TokenScopes } from "#core/tokens/scopes.ts";
import type { Module, OwnedItem, TokenNeed, TokenScopeItem } from "#core/types.ts";

/** Returns the item as declared by a module of this name. */
export const declaredBy = (name: string, item: TokenScopeItem): OwnedItem<TokenScopeItem> => ({
  item,
  owner: { name } as Module,
});

/** Returns the kinds of scopes of one module that declares these items. */
export function kindsOf(...items: readonly TokenScopeItem[]): ScopeKinds {
  const kinds = new ScopeKinds();
  for (const item of items) kinds.add(declaredBy("example", item));
  return kinds;
}

/** Returns whether a token with the scope alone may do what is needed. */
export const opens = (kinds: ScopeKinds, scope: string, need: TokenNeed) => new TokenScopes([scope], kinds).allow(need);

/**
 * Makes a module that declares these items, for hosts without the module to which the scopes
 * belong.
 */
export const declaring = (...items: readonly TokenScopeItem[]) => ({
  name: "scopes_of_others",
  load(module: Module) {
    for (const item of items) module.provides("token-scope", item);
  },
});

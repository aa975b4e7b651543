/** Creates and revokes tokens as recorded changes. */
import type { DeclaredTokenScope, MadeToken, NewToken, ServerTokens, TokenInfo, TokenMetrics } from "../types.ts";
import type { Requester } from "./change.ts";
import type { Changes } from "./changes.ts";

/** The token operations of the host. */
export interface TokensDeps {
  list(): readonly TokenInfo[];
  scopes(): readonly DeclaredTokenScope[];
  metrics(): readonly TokenMetrics[];
  create(wanted: NewToken, by: string): Promise<MadeToken>;
  revoke(nameOrId: string): Promise<TokenInfo>;
}

export function tokenChanges(
  tokens: TokensDeps,
  changes: Changes,
  requesterOf: (by: string | undefined) => Requester,
): ServerTokens {
  return {
    list: () => tokens.list(),
    scopes: () => tokens.scopes(),
    metrics: () => tokens.metrics(),
    create: (wanted, { by } = {}) => {
      const what = `create the token ${shown(wanted.name)} (${[wanted.scopes].flat().map(shown).join(", ")})`;
      const request = { what, ...requesterOf(by) };
      return changes.make(request, () => tokens.create(wanted, request.by)).work as Promise<MadeToken>;
    },
    revoke: (nameOrId, { by } = {}) => {
      const request = { what: `revoke the token ${shown(nameOrId)}`, ...requesterOf(by) };
      return changes.make(request, () => tokens.revoke(nameOrId)).work as Promise<TokenInfo>;
    },
  };
}

/** Shortens what a caller passed; a secret in the position of a name is not recorded. */
function shown(text: unknown): string {
  const given = String(text);
  return given.startsWith("mht_") ? "mht_..." : given.slice(0, 100);
}

/** Making and revoking tokens, as changes that are recorded. */
import type { MadeToken, NewToken, ServerTokens, TokenFigures, TokenInfo, TokenScopeEvent } from "../types.ts";
import { ModhostError } from "../util/errors.ts";
import type { Requester } from "./change.ts";
import type { Changes } from "./changes.ts";

/** What is asked of the tokens themselves. */
export interface TokensDeps {
  list(): readonly TokenInfo[];
  figures(): readonly TokenFigures[];
  create(wanted: NewToken, by: string): Promise<MadeToken>;
  revoke(nameOrId: string): Promise<TokenInfo>;
}

export function tokenChanges(
  tokens: TokensDeps,
  changes: Changes,
  asking: (by: string | undefined) => Requester,
): ServerTokens {
  return {
    list: () => tokens.list(),
    figures: () => tokens.figures(),
    create: (wanted, { by } = {}) => {
      const what = `make the token ${shown(wanted.name)} (${[wanted.scopes].flat().map(shown).join(", ")})`;
      const asked = { what, ...asking(by) };
      return changes.make(asked, () => tokens.create(wanted, asked.by)).work as Promise<MadeToken>;
    },
    revoke: (nameOrId, { by } = {}) => {
      const asked = { what: `revoke the token ${shown(nameOrId)}`, ...asking(by) };
      return changes.make(asked, () => tokens.revoke(nameOrId)).work as Promise<TokenInfo>;
    },
  };
}

/** Modules know what there is to be opened. @throws {ModhostError} TOKEN_INVALID */
export async function assertScopes(
  fire: (event: "token-scope", data: TokenScopeEvent) => unknown,
  scopes: readonly string[] | string,
): Promise<void> {
  for (const scope of [scopes].flat()) {
    const allowed = await fire("token-scope", { scope });
    if (typeof allowed === "string")
      throw new ModhostError("TOKEN_INVALID", { field: "scopes", value: JSON.stringify(scope), allowed });
  }
}

/** What a caller gives, within bounds; a secret that stands where a name belongs is not recorded. */
function shown(text: unknown): string {
  const given = String(text);
  return given.startsWith("mht_") ? "mht_..." : given.slice(0, 100);
}

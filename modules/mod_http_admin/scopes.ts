/** The token scopes of the Admin API. */
import type { NamedTokenScopes } from "../../core/types.ts";

/** The kinds of scopes that this module declares. */
export const scopes = [
  {
    kind: "admin",
    help: "the whole Admin API",
    accesses: { read: "what the Admin API shows: source lines of failed reloads and the log, too" },
  },
] as const satisfies readonly NamedTokenScopes[];

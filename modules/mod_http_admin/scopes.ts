/** The token scopes of the Admin API. */
import type { NamedTokenScopes } from "../../core/types.ts";

/** The kinds of scopes that this module declares. */
export const scopes = [
  {
    kind: "admin",
    help: "the whole Admin API",
    accesses: { read: "everything that the Admin API shows, including source lines of failed reloads and the log" },
  },
] as const satisfies readonly NamedTokenScopes[];

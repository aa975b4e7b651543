/** The token scope of the metrics. */
import type { NamedTokenScopes } from "../../core/types.ts";

/** The kinds of scopes that this module declares. */
export const scopes = [
  { kind: "metrics", help: "the metrics for Prometheus" },
] as const satisfies readonly NamedTokenScopes[];

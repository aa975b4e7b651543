import { createRequire } from "node:module";

let loaded: typeof import("undici") | undefined;

/**
 * Returns the HTTP library. It is loaded with the first request, because it would take a fifth of
 * the host's start.
 */
export function undici(): typeof import("undici") {
  return (loaded ??= createRequire(import.meta.url)("undici") as typeof import("undici"));
}

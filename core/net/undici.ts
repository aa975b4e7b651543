import { createRequire } from "node:module";

let loaded: typeof import("undici") | undefined;

/** The HTTP library, loaded with the first request: it takes a fifth of the host's start otherwise. */
export function undici(): typeof import("undici") {
  return (loaded ??= createRequire(import.meta.url)("undici") as typeof import("undici"));
}

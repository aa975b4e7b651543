/**
 * Traces through OpenTelemetry's API: a span for each request, command and fetched block, for any
 * registered SDK.
 */
import type { Module } from "../../core/types.ts";
import { options } from "./options.ts";

export { options };
export const global = true;

/** The API is an optional peer dependency, since each SDK brings it. */
export default async function load(module: Module): Promise<void> {
  const { makeTraces } = await import("./traces.ts").catch((error: unknown) => {
    if (!isMissing(error)) throw error;
    const remedy = "install an SDK next to the server, which includes it: npm install @opentelemetry/sdk-node";
    throw new Error(`The package @opentelemetry/api is not installed: ${remedy}`, { cause: error });
  });
  makeTraces(module);
}

function isMissing(error: unknown): boolean {
  const { code, message } = error as { readonly code?: unknown; readonly message?: unknown };
  const isUnfound = code === "ERR_MODULE_NOT_FOUND" || code === "MODULE_NOT_FOUND";
  return isUnfound && String(message).includes("@opentelemetry/api");
}

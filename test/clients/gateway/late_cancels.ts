/**
 * Handles a fault of `@helia/delegated-routing-v1-http-api-client` 9.0.2: when a lookup ends early,
 * it cancels a response that it is still reading. That causes an unhandled rejection, which would
 * end the process. Any other rejection still ends it.
 */
export function ignoreLateCancels(): void {
  if (process.listeners("unhandledRejection").includes(onRejection)) return;
  process.on("unhandledRejection", onRejection);
}

function onRejection(error: unknown): void {
  const { code, stack = "" } = error as NodeJS.ErrnoException;
  if (code !== "ERR_INVALID_STATE" || !stack.includes("delegated-routing-v1-http-api-client")) throw error;
}

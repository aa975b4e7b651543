/**
 * `@helia/delegated-routing-v1-http-api-client` 9.0.2 cancels an answer that it still reads where a
 * look-up is left early: a rejection that nobody hears, which would end the process. Any other does
 * so as ever.
 */
export function hearLateCancels(): void {
  if (process.listeners("unhandledRejection").includes(hear)) return;
  process.on("unhandledRejection", hear);
}

function hear(error: unknown): void {
  const { code, stack = "" } = error as NodeJS.ErrnoException;
  if (code !== "ERR_INVALID_STATE" || !stack.includes("delegated-routing-v1-http-api-client")) throw error;
}

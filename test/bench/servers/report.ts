/** What a server tells as soon as it listens; times are since the process began. */
export interface Listening {
  readonly port: number;
  readonly milliseconds: number;
  /** User and system CPU time, microseconds. */
  readonly cpu: number;
}

/**
 * Tells the measuring process the port, and the CPU time whenever it asks, once `done` has done
 * what else it asks; "heap" is answered with the bytes that are in use once garbage is collected.
 * Ends with it.
 */
export function report(port: number, done: (message: unknown) => unknown = () => undefined): void {
  process.on("message", async (message) => {
    await done(message);
    process.send?.(message === "heap" ? bytesInUse() : cpuTime());
  });
  // By its own way out, on which a server removes what it has made.
  for (const end of ["disconnect", "SIGTERM"]) process.on(end, () => process.exit());
  process.send?.({ port, milliseconds: performance.now(), cpu: cpuTime() } satisfies Listening);
}

function cpuTime(): number {
  const { user, system } = process.cpuUsage();
  return user + system;
}

/** Twice: what is finalized by the first is freed by the second. */
function bytesInUse(): number {
  globalThis.gc?.();
  globalThis.gc?.();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

import { readdirSync, readFileSync } from "node:fs";

/** The report of a server when it listens. Times count from the start of the process. */
export interface Listening {
  readonly port: number;
  readonly milliseconds: number;
  /** User and system CPU time in microseconds. */
  readonly cpu: number;
}

/**
 * Reports the port to the measuring process, and the CPU time for each message, after `done` has
 * handled the message. The response to "heap" is the used memory in bytes after a garbage
 * collection. Ends with the measuring process.
 */
export function report(port: number, done: (message: unknown) => unknown = () => undefined): void {
  process.on("message", async (message) => {
    await done(message);
    process.send?.(message === "heap" ? bytesInUse() : cpuTime());
  });
  // A normal exit, so that the server removes its files.
  for (const end of ["disconnect", "SIGTERM"]) process.on(end, () => process.exit());
  process.send?.({ port, milliseconds: performance.now(), cpu: cpuTime() } satisfies Listening);
}

function cpuTime(): number {
  const { user, system } = process.cpuUsage();
  return user + system + timeOfChildren(process.pid);
}

/** Returns the CPU time of the processes below one in microseconds: those of sandboxed modules. */
function timeOfChildren(pid: number): number {
  const threads = readdirSync(`/proc/${pid}/task`).map((thread) => `/proc/${pid}/task/${thread}`);
  const children = threads.flatMap((thread) => readFileSync(`${thread}/children`, "utf8").split(" ").filter(Boolean));
  return children.reduce((sum, child) => sum + ownTime(Number(child)) + timeOfChildren(Number(child)), 0);
}

function ownTime(pid: number): number {
  const threads = readdirSync(`/proc/${pid}/task`);
  const nanoseconds = threads.map((thread) =>
    parseInt(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, "utf8"), 10),
  );
  return nanoseconds.reduce((sum, time) => sum + time, 0) / 1000;
}

/** Collects twice: the second collection frees what the first one has finalized. */
function bytesInUse(): number {
  globalThis.gc?.();
  globalThis.gc?.();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

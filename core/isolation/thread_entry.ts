/** The program of a worker thread: runs one instance of an isolated module. */
import { syncBuiltinESMExports } from "node:module";
import { parentPort, workerData } from "node:worker_threads";
import type { MessageEndpoint } from "../relay/channel.ts";
import { isOwnProcess } from "../util/own_process.ts";
import { runInstance } from "./instance_program.ts";
import type { WorkerCode } from "./messages.ts";
import { gatherOutput } from "./output.ts";

/** Exit code of a worker whose code calls `process.abort` or kills its own process. */
const ABORTED = 134;
const { source, loadTimeout, port, bell, isRung } = workerData as WorkerCode;
// The module's code must not reach the ports.
for (const name of ["port", "bell", "isRung"]) delete (workerData as Record<string, unknown>)[name];
endsAlone();
quietParent();
gatherOutput(process.stdout, process.stderr);

const post = port.postMessage.bind(port);
const ring = bell.postMessage.bind(bell);
const toHost: MessageEndpoint = {
  postMessage(message) {
    post(message);
    if (Atomics.exchange(isRung, 0, 1) === 0) ring(null);
  },
  on: port.on.bind(port),
};
runInstance({ source, loadTimeout, kind: "worker", host: toHost });

/** Makes `process.abort` and `process.kill` end this worker instead of the whole process. */
function endsAlone(): void {
  const { kill } = process;
  process.abort = () => process.exit(ABORTED);
  process.kill = (pid, signal) => (isOwnProcess(pid) && signal !== 0 ? process.exit(ABORTED) : kill(pid, signal));
  syncBuiltinESMExports();
}

/**
 * Drops messages that the module posts to the parent thread. The first one notifies the host.
 */
function quietParent(): void {
  const post = parentPort?.postMessage.bind(parentPort);
  let isReported = false;
  Object.defineProperty(parentPort, "postMessage", {
    value: () => {
      if (!isReported) post?.(null);
      isReported = true;
    },
    writable: true,
    configurable: true,
  });
}

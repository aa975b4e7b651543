/** Operations on the server as a whole. */
import { AdminError } from "../errors.ts";
import { defineChange, defineOperation } from "./operation.ts";

export const serverOperations = [
  defineOperation({
    name: "status",
    method: "GET",
    path: "/status",
    scope: "read",
    help: "Status of the server: version, process, phase, addresses, modules, connections, requests, warnings",
    response: "ServerStatus",
    run: ({ server }) => server.status(),
  }),
  defineOperation({
    name: "whoami",
    method: "GET",
    path: "/whoami",
    scope: "read",
    help: "The caller's name in records, and its scopes",
    response: "Caller",
    run: ({ by, scopes }) => ({ by, scopes: [...scopes] }),
  }),
  defineChange({
    name: "stop",
    path: "/stop",
    help: "Stop the server, as a signal does: open requests are finished first",
    input: {
      timeout: { type: "number", describe: "Seconds that the stop may take; default: the option stop_timeout" },
    },
    run: ({ server, by, input }) => server.stop({ by, timeout: input.timeout }),
  }),
  defineChange({
    name: "reopen",
    path: "/logs/reopen",
    help: "Reopen the log files, after they were moved away",
    run: ({ server, by }) => server.reopen_logs({ by }),
  }),
  defineChange({
    name: "takeover",
    path: "/takeover",
    help: "Hand over to a new process: it loads everything, then it gets the ports, and this process ends",
    input: {
      command: {
        type: "string",
        describe:
          "The executable and its arguments, as a JSON list; only through the admin socket. Default: this program",
        maxLength: 65_536,
      },
      folder: { type: "string", describe: "The folder in which it starts; default: that of this process" },
      wait: { type: "number", describe: "Seconds to wait for long requests; default 60" },
    },
    async run({ server, by, viaSocket, event, input: { command, folder, wait } }) {
      // A token must not let its owner run an arbitrary program.
      if ((command !== undefined || folder !== undefined) && !viaSocket)
        throw new AdminError("forbidden", "Only callers of the admin socket can start another program");
      // Marks this request as one that ends with the server, so that the handover does not wait for
      // it.
      event.request.leaving.throwIfAborted();
      return server.hand_over({ command: wordsOf(command), folder, wait }, { by });
    },
  }),
];

/** @throws {AdminError} invalid */
function wordsOf(command: string | undefined): string[] | undefined {
  if (command === undefined) return undefined;
  try {
    const words: unknown = JSON.parse(command);
    if (Array.isArray(words) && words.length > 0 && words.every((word) => typeof word === "string")) return words;
  } catch {} // Text that is not JSON gets the same error as other wrong values.
  throw new AdminError("invalid", "The field command must be a JSON list of strings, the executable first");
}

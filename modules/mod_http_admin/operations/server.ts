/** Operations on the server as a whole. */
import { AdminError } from "../errors.ts";
import { defineChange, defineOperation } from "./operation.ts";

export const serverOperations = [
  defineOperation({
    name: "status",
    method: "GET",
    path: "/status",
    scope: "read",
    help: "How the server is: version, process, phase, addresses, modules, connections, requests, warnings",
    response: "ServerStatus",
    run: ({ server }) => server.status(),
  }),
  defineOperation({
    name: "whoami",
    method: "GET",
    path: "/whoami",
    scope: "read",
    help: "Who asks, as records name it, and what the caller may",
    response: "Caller",
    run: ({ by, scopes }) => ({ by, scopes: [...scopes] }),
  }),
  defineChange({
    name: "stop",
    path: "/stop",
    help: "Stop the server, as a signal does: requests in flight are finished first",
    input: {
      timeout: { type: "number", describe: "Seconds that all of it may take; default: the option stop_timeout" },
    },
    run: ({ server, by, input }) => server.stop({ by, timeout: input.timeout }),
  }),
  defineChange({
    name: "reopen",
    path: "/logs/reopen",
    help: "Open the files that logs are written to again, after they were moved away",
    run: ({ server, by }) => server.reopen_logs({ by }),
  }),
  defineChange({
    name: "takeover",
    path: "/takeover",
    help: "Let another process go on in place of this one: it loads everything, then it gets the ports, and this one ends",
    input: {
      command: {
        type: "string",
        describe:
          "The executable and its arguments, as a JSON list; only through the admin socket. Default: this program",
        maxLength: 65_536,
      },
      folder: { type: "string", describe: "Where it starts; default: where this process did" },
      wait: { type: "number", describe: "Seconds for which requests that last may hold it up; default 60" },
    },
    async run({ server, by, viaSocket, event, input: { command, folder, wait } }) {
      // A token must not let its owner run an arbitrary program.
      if ((command !== undefined || folder !== undefined) && !viaSocket)
        throw new AdminError("forbidden", "Another program is started only for callers of the admin socket");
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
  } catch {} // The same reason holds.
  throw new AdminError("invalid", "The field command must be a JSON list of strings, the executable first");
}

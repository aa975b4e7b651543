/** The server as a whole. */
import { defineChange, defineOperation } from "./operation.ts";

export const serverOperations = [
  defineOperation({
    name: "status",
    method: "GET",
    path: "/status",
    scope: "read",
    help: "How the server is: version, process, phase, addresses, modules, connections, requests, warnings",
    answer: "ServerStatus",
    run: ({ server }) => server.status(),
  }),
  defineOperation({
    name: "whoami",
    method: "GET",
    path: "/whoami",
    scope: "read",
    help: "Who asks, as records name it, and what the caller may",
    answer: "Caller",
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
];

/** Operations for the latest log lines, requests and changes. */
import type { LogLine } from "../../../core/types.ts";
import { defineOperation } from "./operation.ts";

/** Ordered by increasing severity. */
const levels = ["debug", "info", "warn", "error"] as const satisfies readonly LogLine["level"][];
const results = ["done", "refused", "failed"] as const;

const DEFAULT_LIMIT = 200;
const limit = { type: "number", describe: `Maximum number of the latest ones; default ${DEFAULT_LIMIT}` } as const;

export const recentOperations = [
  defineOperation({
    name: "log",
    method: "GET",
    path: "/log",
    scope: "read",
    help: "The latest lines of the log, the oldest first; later ones are events of the topic log",
    input: {
      level: { type: "string", values: levels, describe: "The lowest level to show" },
      module: { type: "string", describe: "The module that wrote them; `core`: the server itself" },
      text: { type: "string", describe: "A part of the message, in any case" },
      before: { type: "number", describe: "Lines before the one with this number (field n)" },
      limit,
    },
    response: { type: "array", items: { $ref: "#/components/schemas/LogLine" } },
    run({ server, input }) {
      const {
        level = "debug",
        module,
        text = "",
        before = Number.POSITIVE_INFINITY,
        limit: most = DEFAULT_LIMIT,
      } = input;
      const least = levels.indexOf(level as LogLine["level"]);
      const sought = text.toLowerCase();
      const found = server.log().filter((line) => {
        if (line.n >= before || levels.indexOf(line.level) < least) return false;
        return (module === undefined || module === (line.module ?? "core")) && line.msg.toLowerCase().includes(sought);
      });
      return latest(found, most);
    },
  }),
  defineOperation({
    name: "requests",
    method: "GET",
    path: "/requests",
    scope: "read",
    help: "The latest finished requests, up to 1,000 (on a busy server 100 per second, and as many failed ones), the oldest first; later ones are events of the topic requests",
    input: {
      app: { type: "string", describe: "The app that responded" },
      module: { type: "string", describe: "The module that responded" },
      status: { type: "string", describe: "A status, or a class of them such as 4xx" },
      method: { type: "string", describe: "Method of the request" },
      path: { type: "string", describe: "A part of its path" },
      limit,
    },
    response: { type: "array", items: { $ref: "#/components/schemas/FinishedRequest" } },
    run: ({ requests, input: { limit: most = DEFAULT_LIMIT, ...filter } }) => latest(requests.find(filter), most),
  }),
  defineOperation({
    name: "changes",
    method: "GET",
    path: "/changes",
    scope: "read",
    help: "The latest changes of the server, the oldest first",
    response: { type: "array", items: { $ref: "#/components/schemas/Change" } },
    run: ({ server }) => server.changes(),
  }),
  defineOperation({
    name: "audit",
    method: "GET",
    path: "/audit",
    scope: "read",
    help: "Changes from the audit file, including those of previous processes, the newest first, in pages",
    input: {
      before: { type: "string", describe: "The field next of the previous page" },
      limit: { type: "number", describe: "Number of changes on a page, up to 500; default 50" },
      by: { type: "string", describe: "A part of the requester's name" },
      what: { type: "string", describe: "A part of the requested change" },
      result: { type: "string", values: results, describe: "The result" },
    },
    response: "AuditPage",
    run: ({ server, input: { result, ...filter } }) =>
      server.audit({ ...filter, result: results.find((one) => one === result) }),
  }),
];

function latest<T>(found: readonly T[], most: number): readonly T[] {
  return found.slice(Math.max(0, found.length - Math.max(0, Math.floor(most))));
}

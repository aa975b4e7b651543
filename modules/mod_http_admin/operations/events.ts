/** The operation that streams events of the server. */
import { defaultTopics } from "../topics.ts";
import { defineOperation } from "./operation.ts";

export const eventOperations = [
  defineOperation({
    name: "events",
    method: "GET",
    path: "/events",
    scope: "read",
    help: "Events of the server, as server-sent events: log lines, finished requests, metrics, changes, and topics of modules",
    input: {
      topics: { type: "string", describe: `Topics, separated by commas; default: ${defaultTopics.join(",")}` },
    },
    response: "Event",
    isRaw: true,
    run: ({ event, input, streams }) => streams.open(event, input.topics),
  }),
];

/** The operation that streams events of the server. */
import { defaultTopics } from "../topics.ts";
import { defineOperation } from "./operation.ts";

export const eventOperations = [
  defineOperation({
    name: "events",
    method: "GET",
    path: "/events",
    scope: "read",
    help: "What happens, as server-sent events: lines of the log, requests that are over, figures, changes, and what modules add",
    input: {
      topics: { type: "string", describe: `Topics, with commas between; default: ${defaultTopics.join(",")}` },
    },
    response: "Event",
    isRaw: true,
    run: ({ event, input, streams }) => streams.open(event, input.topics),
  }),
];

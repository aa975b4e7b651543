/** What happens in the server. */
import { topics } from "../events.ts";
import { defineOperation } from "./operation.ts";

export const eventOperations = [
  defineOperation({
    name: "events",
    method: "GET",
    path: "/events",
    scope: "read",
    help: "What happens, as server-sent events: lines of the log, requests that are over, figures, changes",
    input: { topics: { type: "string", describe: `Some of ${topics.join(",")}, with commas between; default: all` } },
    answer: "Event",
    isRaw: true,
    run: ({ event, input, streams }) => streams.open(event, input.topics),
  }),
];

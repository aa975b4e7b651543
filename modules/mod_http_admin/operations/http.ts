/** Operations for the routes of the server. */
import type { HttpModule } from "../../../core/http/index.ts";
import { defineOperation } from "./operation.ts";

export const httpOperations = [
  defineOperation({
    name: "routes",
    method: "GET",
    path: "/routes",
    scope: "read",
    help: "Every route that is served, host by host",
    response: { type: "array", items: { $ref: "#/components/schemas/Route" } },
    run: ({ module }) => module.depends<HttpModule>("http").routes(),
  }),
  defineOperation({
    name: "middleware",
    method: "GET",
    path: "/middleware",
    scope: "read",
    help: "The middleware that requests pass before they reach apps, the outermost first: guards, compression and others",
    response: { type: "array", items: { $ref: "#/components/schemas/Middleware" } },
    run: ({ module }) => module.depends<HttpModule>("http").describeMiddleware(),
  }),
  defineOperation({
    name: "explain",
    method: "GET",
    path: "/explain",
    scope: "read",
    help: "How a request would be handled, and why",
    input: {
      method: { type: "string", required: true, describe: "Method of the request" },
      path: { type: "string", required: true, describe: "Its path, as it is sent" },
      host: { type: "string", describe: "Its Host" },
    },
    response: "Explanation",
    run: ({ module, input }) => module.depends<HttpModule>("http").explain(input.method, input.path, input.host),
  }),
];

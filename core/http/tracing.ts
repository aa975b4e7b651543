/** Requests as `node:diagnostics_channel` tells of them; nothing is made while nobody listens. */
import { tracingChannel } from "node:diagnostics_channel";
import type { HttpRequest, HttpResponse, RequestTrace } from "../types.ts";

const requests = tracingChannel<RequestTrace>("modhost:request");

/** The exchange that is traced. */
interface Traced {
  readonly request: HttpRequest;
  readonly response: HttpResponse;
  trace: RequestTrace | undefined;
}

/** Does anybody listen? */
export const isTraced = (): boolean => requests.hasSubscribers;

/** Answers a request within what listeners bind to it. */
export function traced<T>(exchange: Traced, answer: () => T): T {
  const { request, response } = exchange;
  const nothing = { module: undefined, route: undefined, status: 0, complete: false, error: undefined };
  const trace: RequestTrace = { request, response, ...nothing };
  exchange.trace = trace;
  return requests.start.runStores(trace, () => {
    try {
      return answer();
    } finally {
      requests.end.publish(trace);
    }
  });
}

/** The request is over. */
export function endTrace(trace: RequestTrace, outcome: Omit<RequestTrace, "request" | "response" | "error">): void {
  Object.assign(trace, outcome);
  if (trace.error !== undefined) requests.error.publish(trace);
  requests.asyncStart.publish(trace);
  requests.asyncEnd.publish(trace);
}

/** Publishes requests on `node:diagnostics_channel`. Nothing is created while nobody listens. */
import { tracingChannel } from "node:diagnostics_channel";
import type { HttpRequest, HttpResponse, RequestTrace } from "../../types.ts";

const requests = tracingChannel<RequestTrace>("modhost:request");

/** The exchange that is traced. */
interface Traced {
  readonly request: HttpRequest;
  readonly response: HttpResponse;
  trace: RequestTrace | undefined;
}

/** Whether anybody listens. */
export const isTraced = (): boolean => requests.hasSubscribers;

/** Serves a request within the stores that listeners bind to it. */
export function traced<T>(exchange: Traced, respond: () => T): T {
  const { request, response } = exchange;
  const nothing = { module: undefined, route: undefined, status: 0, complete: false, error: undefined };
  const trace: RequestTrace = { request, response, ...nothing };
  exchange.trace = trace;
  return requests.start.runStores(trace, () => {
    try {
      return respond();
    } finally {
      requests.end.publish(trace);
    }
  });
}

/**
 * Refuses a request inside its own trace when it has reached no handler and so has no trace yet.
 * Returns false when the caller has to refuse it.
 */
export function tracesRefusal(exchange: Traced, refuse: () => void): boolean {
  if (exchange.trace !== undefined || !isTraced()) return false;
  traced(exchange, refuse);
  return true;
}

/** Ends the trace of a request. */
export function endTrace(trace: RequestTrace, outcome: Omit<RequestTrace, "request" | "response" | "error">): void {
  Object.assign(trace, outcome);
  if (trace.error !== undefined) requests.error.publish(trace);
  requests.asyncStart.publish(trace);
  requests.asyncEnd.publish(trace);
}

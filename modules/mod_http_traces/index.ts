/** Traces through OpenTelemetry's API: a span a request, a command and a fetched block, for whatever SDK is registered. */
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { createContextKey, propagation, ROOT_CONTEXT, trace } from "@opentelemetry/api";
import { packageVersion } from "../../core/index.ts";
import type { ClientTrace, HttpRequest, Module, RequestTrace } from "../../core/types.ts";
import { contextStore } from "./context.ts";
import { options } from "./options.ts";
import { blockSpans, commandSpans, makeSpans, requestSpans } from "./spans.ts";
import { contextHeaders, readContext } from "./w3c.ts";

export { options };
export const global = true;

const requestId = createContextKey("modhost request id");

export default function load(module: Module): void {
  const takeOver = module.get_option_enum("traces_take_over", options.traces_take_over.values) ?? "all";
  const mayTake = (request: HttpRequest) => takeOver === "all" || (takeOver === "proxies" && request.from_proxy);
  const tracer = trace.getTracer("modhost", packageVersion());
  const { store, release } = contextStore();
  module.on_release("context of spans", release, "trace");

  const parentOf = ({ request }: RequestTrace) => {
    const context = ROOT_CONTEXT.setValue(requestId, request.id);
    if (!mayTake(request)) return context;
    const { traceparent, tracestate } = request.headers;
    const caller = readContext(traceparent, tracestate);
    if (caller !== undefined) return trace.setSpanContext(context, caller);
    // Other forms than W3C's are read by the propagator that is registered, if any.
    if (propagation.fields().length === 0) return context;
    return propagation.extract(context, request.headers, {
      keys: (headers) => Object.keys(headers),
      get: (headers, name) => headers[name.toLowerCase().replaceAll("-", "_")],
    });
  };
  for (const stop of [
    makeSpans(requestSpans(parentOf), tracer, store),
    makeSpans(commandSpans, tracer, store),
    makeSpans(blockSpans, tracer, store),
  ]) {
    module.on_release("spans", stop, "trace");
  }

  /** What a handler asks of others belongs to its request. */
  const handOn = (message: unknown) => {
    const { headers } = message as ClientTrace;
    const context = store.getStore();
    const current = context && trace.getSpanContext(context);
    if (context === undefined) return;
    const id = context.getValue(requestId);
    const own = { ...(current && contextHeaders(current)), ...(typeof id === "string" && { "x-request-id": id }) };
    for (const [name, value] of Object.entries(own)) headers[name] ??= value;
  };
  subscribe("modhost:client", handOn);
  module.on_release("headers of requests", () => unsubscribe("modhost:client", handOn), "trace");
}

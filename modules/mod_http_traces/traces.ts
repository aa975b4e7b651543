/** Connects the channels of the host with the spans of any registered SDK. */
import { channel, subscribe, unsubscribe } from "node:diagnostics_channel";
import {
  type Context,
  createContextKey,
  isSpanContextValid,
  propagation,
  ROOT_CONTEXT,
  type SpanContext,
  trace,
} from "@opentelemetry/api";
import { packageVersion } from "../../core/index.ts";
import type { ClientTrace, HttpRequest, LogTrace, Module, RequestTrace } from "../../core/types.ts";
import { type ContextStore, contextStore } from "./context.ts";
import { options } from "./options.ts";
import { requestSpans } from "./request_spans.ts";
import { blockSpans, commandSpans, makeSpans } from "./spans.ts";
import { contextHeaders, readContext } from "./w3c.ts";

const requestId = createContextKey("modhost request id");

export function makeTraces(module: Module): void {
  const tracer = trace.getTracer("modhost", packageVersion());
  const { store, release } = contextStore();
  module.on_release("context of spans", release, "trace");
  const begun = new WeakMap<HttpRequest, SpanContext>();
  const callerOf = callersOf(module);
  const sources = {
    parentOf(traced: RequestTrace): Context {
      const { request } = traced;
      const active = store.getStore();
      // An instrumentation of Node's servers has begun a span for this request. The context of an
      // earlier request is active if that request opened the port.
      const isInstrumented =
        active !== undefined && active.getValue(requestId) === undefined && trace.getSpanContext(active) !== undefined;
      return (isInstrumented ? active : callerOf(request)).setValue(requestId, request.id);
    },
    begun: ({ request }: RequestTrace, span: SpanContext) => void begun.set(request, span),
    mask: (text: string) => module.mask(text),
  };
  for (const stop of [
    makeSpans(requestSpans(sources), tracer, store, sources.mask),
    makeSpans(commandSpans, tracer, store, sources.mask),
    makeSpans(blockSpans, tracer, store, sources.mask),
  ]) {
    module.on_release("spans", stop, "trace");
  }
  listen(module, "modhost:client", (message) => handOn(store, message as ClientTrace));
  listen(module, "modhost:log", (message) => {
    const { request, fields } = message as LogTrace;
    const active = store.getStore();
    const span = request === undefined ? active && trace.getSpanContext(active) : begun.get(request);
    if (span === undefined || !isSpanContextValid(span)) return;
    fields.trace_id = span.traceId;
    fields.span_id = span.spanId;
  });
}

function listen(module: Module, name: string, listener: Parameters<typeof subscribe>[1]): void {
  subscribe(name, listener);
  module.on_release(`listener of ${name}`, () => unsubscribe(name, listener), "trace");
}

/** Reads the trace context that the caller of a request sends, if the options allow it. */
function callersOf(module: Module): (request: HttpRequest) => Context {
  const takeOver = module.get_option_enum("traces_take_over", options.traces_take_over.values) ?? "all";
  const mayTake = (request: HttpRequest) => takeOver === "all" || (takeOver === "proxies" && request.from_proxy);
  return (request) => {
    if (!mayTake(request)) return ROOT_CONTEXT;
    const caller = readContext(request.header("traceparent"), request.header("tracestate"));
    if (caller !== undefined) return trace.setSpanContext(ROOT_CONTEXT, caller);
    // Formats other than W3C's are read by the registered propagator, if any.
    if (propagation.fields().length === 0) return ROOT_CONTEXT;
    return propagation.extract(ROOT_CONTEXT, request, {
      keys: ({ raw: { rawHeaders } }) => rawHeaders.filter((_, at) => at % 2 === 0).map((name) => name.toLowerCase()),
      get: (from, name) => from.header(name),
    });
  };
}

/** The channel on which an instrumentation of undici makes spans for outgoing requests. */
const undiciRequests = channel("undici:request:create");

/**
 * Outgoing requests of a handler belong to its request. An instrumentation adds its own header with
 * a closer span; with two headers, neither would count.
 */
function handOn(store: ContextStore, { headers }: ClientTrace): void {
  const context = store.getStore();
  if (context === undefined) return;
  const current = trace.getSpanContext(context);
  const id = context.getValue(requestId);
  const trail = current === undefined || undiciRequests.hasSubscribers ? {} : contextHeaders(current);
  const own = { ...trail, ...(typeof id === "string" && { "x-request-id": id }) };
  for (const [name, value] of Object.entries(own)) headers[name] ??= value;
}

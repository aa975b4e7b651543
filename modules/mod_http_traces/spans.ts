/** Spans of what the channels of the host, the RPC and the node tell of. */
import { tracingChannel } from "node:diagnostics_channel";
import {
  type Context,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from "@opentelemetry/api";
import { reasonOf } from "../../core/index.ts";
import type { BlockTrace, CommandTrace, RequestTrace } from "../../core/types.ts";
import type { ContextStore } from "./context.ts";

interface Traced {
  error: unknown;
}

/** What a channel tells of, and what its span says of it. */
interface SpanSource<T extends Traced> {
  readonly channel: string;
  /** The span as it begins; its parent is the context that is given, or what the answer names. */
  begin(traced: T, tracer: Tracer, parent: Context): { span: Span; context?: Context };
  end?(traced: T, span: Span): void;
}

/** Makes spans until the function that is returned is called. */
export function makeSpans<T extends Traced>(source: SpanSource<T>, tracer: Tracer, store: ContextStore): () => void {
  const channel = tracingChannel<T, T>(source.channel);
  const spans = new WeakMap<T, Span>();
  const enter = (traced: T): Context => {
    const parent = store.getStore() ?? ROOT_CONTEXT;
    try {
      const { span, context = parent } = source.begin(traced, tracer, parent);
      spans.set(traced, span);
      return trace.setSpan(context, span);
    } catch {
      // What an SDK throws is no reason for a request to fail.
      return parent;
    }
  };
  const asyncEnd = (traced: T) => {
    const span = spans.get(traced);
    if (span === undefined) return;
    spans.delete(traced);
    source.end?.(traced, span);
    const { error } = traced;
    if (error !== undefined) {
      if (error instanceof Error) span.recordException(error);
      span.setStatus({ code: SpanStatusCode.ERROR, message: reasonOf(error) });
    }
    span.end();
  };
  channel.start.bindStore(store as never, enter as never);
  channel.asyncEnd.subscribe(asyncEnd as never);
  return () => {
    channel.start.unbindStore(store as never);
    channel.asyncEnd.unsubscribe(asyncEnd as never);
  };
}

/** A span a request, with its module and route; names and attributes are those of OpenTelemetry's conventions. */
export function requestSpans(parentOf: (traced: RequestTrace) => Context): SpanSource<RequestTrace> {
  return {
    channel: "modhost:request",
    begin(traced, tracer) {
      const { request } = traced;
      const attributes = {
        "http.request.method": request.method,
        "url.path": request.url.raw_path,
        "url.scheme": request.secure ? "https" : "http",
        "client.address": request.ip,
        "network.protocol.version": request.httpversion,
        "modhost.request.id": request.id,
        ...(request.headers.host !== undefined && { "server.address": request.headers.host }),
        ...(request.headers.user_agent !== undefined && { "user_agent.original": request.headers.user_agent }),
      };
      const context = parentOf(traced);
      const span = tracer.startSpan(request.method, { kind: SpanKind.SERVER, attributes }, context);
      return { span, context };
    },
    end({ module, route, status, complete }, span) {
      if (route !== undefined) {
        span.updateName(route);
        span.setAttribute("http.route", route.slice(route.indexOf(" ") + 1));
      }
      if (module !== undefined) span.setAttribute("modhost.module", module);
      if (status > 0) span.setAttribute("http.response.status_code", status);
      if (!complete) span.setAttribute("modhost.incomplete", true);
      if (status >= 500) span.setStatus({ code: SpanStatusCode.ERROR });
    },
  };
}

/** A span a command of the RPC. */
export const commandSpans: SpanSource<CommandTrace> = {
  channel: "modhost:command",
  begin: ({ command }, tracer, parent) => {
    const attributes = { "rpc.system": "ipfs", "rpc.method": command };
    return { span: tracer.startSpan(`command ${command}`, { attributes }, parent) };
  },
};

/** A span for each block that is fetched from peers. */
export const blockSpans: SpanSource<BlockTrace> = {
  channel: "modhost:block",
  begin: ({ cid }, tracer, parent) => {
    const attributes = { "ipfs.cid": cid.toString() };
    return { span: tracer.startSpan("fetch block", { kind: SpanKind.CLIENT, attributes }, parent) };
  },
};

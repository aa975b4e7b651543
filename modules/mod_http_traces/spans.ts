/** Makes spans from the diagnostics channels of the host, the RPC and the node. */
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
import type { BlockTrace, CommandTrace } from "../../core/types.ts";
import type { ContextStore } from "./context.ts";

interface Traced {
  error: unknown;
}

/** A channel, and how to make a span from its events. */
export interface SpanSource<T extends Traced> {
  readonly channel: string;
  /** Begins the span. Its parent is the given context, unless the result names another one. */
  begin(traced: T, tracer: Tracer, parent: Context): { span: Span; context?: Context };
  /** Returns true if the outcome is a failure. */
  end?(traced: T, span: Span): boolean;
}

/** Makes spans until the returned function is called. Error texts are masked. */
export function makeSpans<T extends Traced>(
  source: SpanSource<T>,
  tracer: Tracer,
  store: ContextStore,
  mask: (text: string) => string,
): () => void {
  const channel = tracingChannel<T, T>(source.channel);
  const spans = new WeakMap<T, Span>();
  const enter = (traced: T): Context => {
    const parent = store.getStore() ?? ROOT_CONTEXT;
    try {
      const { span, context = parent } = source.begin(traced, tracer, parent);
      spans.set(traced, span);
      return trace.setSpan(context, span);
    } catch {
      // An error of an SDK must not make the request fail.
      return parent;
    }
  };
  const asyncEnd = (traced: T) => {
    const span = spans.get(traced);
    if (span === undefined) return;
    spans.delete(traced);
    const hasFailed = source.end?.(traced, span) === true;
    const { error } = traced;
    if (error instanceof Error) {
      const { name, message, stack = "" } = error;
      span.recordException({ name, message: mask(message), stack: mask(stack) });
    }
    if (hasFailed || error !== undefined) {
      const reason = error === undefined ? {} : { message: mask(reasonOf(error)) };
      span.setStatus({ code: SpanStatusCode.ERROR, ...reason });
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

/** A span for each RPC command. */
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

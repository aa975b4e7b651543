/** W3C Trace Context: the headers `traceparent` and `tracestate`. */
import { createTraceState, isSpanContextValid, type SpanContext, TraceFlags } from "@opentelemetry/api";

/**
 * Maximum length of a stored tracestate in characters. The recommendation requires at least 512.
 */
const MAX_STATE = 512;

const parentPattern = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;

/** Returns the caller's span; undefined if the headers name none. */
export function readContext(traceparent: string | undefined, tracestate: string | undefined): SpanContext | undefined {
  const [, version, traceId, spanId, flags, rest] = parentPattern.exec(traceparent?.trim() ?? "") ?? [];
  if (version === undefined || traceId === undefined || spanId === undefined || flags === undefined) return undefined;
  // Later versions may have more fields, but version 00 has none. The version ff is invalid.
  if (version === "ff" || (version === "00" && rest !== undefined)) return undefined;
  const traceFlags = Number.parseInt(flags, 16) & TraceFlags.SAMPLED;
  const hasState = tracestate !== undefined && tracestate !== "" && tracestate.length <= MAX_STATE;
  const state = hasState ? { traceState: createTraceState(tracestate) } : {};
  const context: SpanContext = { traceId, spanId, traceFlags, isRemote: true, ...state };
  return isSpanContextValid(context) ? context : undefined;
}

/** Returns the headers that pass a span on; none for an invalid span. */
export function contextHeaders(context: SpanContext): Record<string, string> {
  if (!isSpanContextValid(context)) return {};
  const { traceId, spanId, traceFlags, traceState } = context;
  const traceparent = `00-${traceId}-${spanId}-${(traceFlags & TraceFlags.SAMPLED).toString(16).padStart(2, "0")}`;
  const tracestate = traceState?.serialize() ?? "";
  return { traceparent, ...(tracestate !== "" && { tracestate }) };
}

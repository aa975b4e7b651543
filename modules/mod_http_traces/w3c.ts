/** W3C Trace Context: the headers `traceparent` and `tracestate`. */
import { createTraceState, isSpanContextValid, type SpanContext, TraceFlags } from "@opentelemetry/api";

/** Characters of a tracestate that are kept; the recommendation asks for 512 at least. */
const MAX_STATE = 512;

const parentPattern = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;

/** The span that the caller is in; undefined where the headers name none. */
export function readContext(traceparent: string | undefined, tracestate: string | undefined): SpanContext | undefined {
  const [, version, traceId, spanId, flags, rest] = parentPattern.exec(traceparent?.trim() ?? "") ?? [];
  if (version === undefined || traceId === undefined || spanId === undefined || flags === undefined) return undefined;
  // Later versions may have more fields, this one has none; ff is none at all.
  if (version === "ff" || (version === "00" && rest !== undefined)) return undefined;
  const traceFlags = Number.parseInt(flags, 16) & TraceFlags.SAMPLED;
  const hasState = tracestate !== undefined && tracestate !== "" && tracestate.length <= MAX_STATE;
  const state = hasState ? { traceState: createTraceState(tracestate) } : {};
  const context: SpanContext = { traceId, spanId, traceFlags, isRemote: true, ...state };
  return isSpanContextValid(context) ? context : undefined;
}

/** The headers that hand a span on; none for one that is not valid. */
export function contextHeaders(context: SpanContext): Record<string, string> {
  if (!isSpanContextValid(context)) return {};
  const { traceId, spanId, traceFlags, traceState } = context;
  const traceparent = `00-${traceId}-${spanId}-${(traceFlags & TraceFlags.SAMPLED).toString(16).padStart(2, "0")}`;
  const tracestate = traceState?.serialize() ?? "";
  return { traceparent, ...(tracestate !== "" && { tracestate }) };
}

/**
 * Adds the ids of spans to log lines of a worker. The host makes the spans, and sends their ids
 * with each request.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import { tracingChannel } from "node:diagnostics_channel";
import type { RequestTrace } from "../types.ts";
import type { LogFields } from "../util/log_fields.ts";

const current = new AsyncLocalStorage<LogFields | undefined>();
/** The fields for each of Node's own messages. */
const given = new WeakMap<object, LogFields>();
let isBound = false;

/** Adds these fields to log lines that are written while the request is handled. */
export function traceRequest(message: object, fields: LogFields): void {
  given.set(message, fields);
  if (isBound) return;
  isBound = true;
  const { start } = tracingChannel<RequestTrace>("modhost:request");
  start.bindStore(current as never, (({ request }: RequestTrace) => given.get(request.raw)) as never);
}

/** Returns the fields of the request that is being handled; undefined if it is not traced. */
export const tracedHere = (): LogFields | undefined => current.getStore();

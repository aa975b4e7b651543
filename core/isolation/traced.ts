/**
 * The ids of spans in log lines of a worker. The host makes the spans, and sends their ids with
 * each request.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import { tracingChannel } from "node:diagnostics_channel";
import type { RequestTrace } from "../types.ts";
import type { LogFields } from "../util/log_fields.ts";

const current = new AsyncLocalStorage<LogFields | undefined>();
/** The fields by Node's own message. */
const given = new WeakMap<object, LogFields>();
let isBound = false;

/** Log lines that are written while this request is answered get these fields. */
export function traceRequest(message: object, fields: LogFields): void {
  given.set(message, fields);
  if (isBound) return;
  isBound = true;
  const { start } = tracingChannel<RequestTrace>("modhost:request");
  start.bindStore(current as never, (({ request }: RequestTrace) => given.get(request.raw)) as never);
}

/** The fields of the request that is being answered; undefined where nothing is traced. */
export const tracedHere = (): LogFields | undefined => current.getStore();

/** Converts the state of a Koa context to a response of the host. */
import { Readable } from "node:stream";
import type { Context } from "koa";
import type { ResponseFields, ResponseHeaders } from "../../types.ts";
import { ModhostError } from "../../util/errors.ts";
import { STATUS_CODES } from "../../util/node_http.ts";
import { classify, type Failure } from "../message/failure.ts";
import type { Body } from "../message/response.ts";

const emptyStatuses: ReadonlySet<number> = new Set([204, 205, 304]);

/**
 * Returns the response that Koa would send, as a handler's value; undefined when the middleware has
 * not responded.
 */
export function resultOf(context: Context): number | ResponseFields | undefined {
  const { status, res, req } = context;
  const body = bodyOf(context);
  const isError = status >= 400;
  if (body === undefined && isError) return status === 404 ? undefined : status;
  const fields: ResponseFields = { status_code: status };
  if (req.httpVersionMajor < 2 && res.statusMessage) fields.status = res.statusMessage;
  if (body !== undefined) return { ...fields, body };
  if (context.body === null || emptyStatuses.has(status)) return { ...fields, headers: { content_type: undefined } };
  const headers = { content_type: "text/plain; charset=utf-8" };
  // A response to HEAD keeps the middleware's length and type. Without them it has no length, and
  // the type of the status phrase.
  if (context.method === "HEAD") {
    return { ...fields, headers: context.response.get("Content-Type") ? {} : headers, body: Readable.from([]) };
  }
  return { ...fields, headers, body: fields.status ?? STATUS_CODES[status] ?? String(status) };
}

/** Returns the body that Koa would send; undefined for none. */
export function bodyOf({ body }: Context): Body | undefined {
  if (body === undefined || body === null) return undefined;
  if (typeof body === "string" || Buffer.isBuffer(body) || body instanceof ReadableStream) return body;
  if (body instanceof Blob) return body.stream();
  if (body instanceof Response) return body.body ?? "";
  if (body instanceof Readable) return body;
  // Old streams, and streams of packages with their own implementation.
  if (typeof body === "object" && "pipe" in body) return new Readable().wrap(body as NodeJS.ReadableStream);
  return JSON.stringify(body);
}

/**
 * Returns the status and the public message of an error. HTTP errors have `status` or `statusCode`,
 * and `expose`. Others are classified as for every handler.
 */
export function failureOf(thrown: unknown): Failure {
  if (typeof thrown !== "object" || thrown === null || ModhostError.is(thrown)) return classify(thrown);
  const { status, statusCode, expose, message } = thrown as Record<string, unknown>;
  const code = [status, statusCode].find((one) => Number.isInteger(one) && Number(one) >= 400 && Number(one) <= 599);
  if (typeof code !== "number") return classify(thrown);
  // The error page already contains the phrase of the status.
  const isShown = expose === true && typeof message === "string" && message !== "" && message !== STATUS_CODES[code];
  return { status: code, message: isShown ? message : undefined };
}

/** Returns the headers that an error defines for its response. */
export function headersOf(thrown: unknown): ResponseHeaders {
  const headers = (thrown as { headers?: unknown } | null | undefined)?.headers;
  if (typeof headers !== "object" || headers === null) return {};
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name.toLowerCase().replaceAll("-", "_"), value]),
  );
}

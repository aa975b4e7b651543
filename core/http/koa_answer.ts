/** What middleware has made of its context, as an answer of the host. */
import { Readable } from "node:stream";
import type { Context } from "koa";
import type { ResponseFields, ResponseHeaders } from "../types.ts";
import { ModhostError } from "../util/errors.ts";
import { STATUS_CODES } from "../util/node_http.ts";
import { classify, type Failure } from "./failure.ts";
import type { Body } from "./response.ts";

const emptyStatuses: ReadonlySet<number> = new Set([204, 205, 304]);

/** What Koa would send of the context, as a handler's value; undefined when the middleware has not answered. */
export function resultOf(context: Context): number | ResponseFields | undefined {
  const { status, res, req } = context;
  const body = bodyOf(context);
  const isError = status >= 400;
  if (body === undefined && isError) return status === 404 ? undefined : status;
  const fields: ResponseFields = { status_code: status };
  if (req.httpVersionMajor < 2 && res.statusMessage) fields.status = res.statusMessage;
  if (body !== undefined) return { ...fields, body };
  // A HEAD answer has the length that the middleware gave it, or none.
  if (context.method === "HEAD") return { ...fields, body: Readable.from([]) };
  if (context.body === null || emptyStatuses.has(status)) return { ...fields, headers: { content_type: undefined } };
  const phrase = STATUS_CODES[status] ?? String(status);
  return { ...fields, headers: { content_type: "text/plain; charset=utf-8" }, body: fields.status ?? phrase };
}

/** The body that Koa would send; undefined for none. */
export function bodyOf({ body }: Context): Body | undefined {
  if (body === undefined || body === null) return undefined;
  if (typeof body === "string" || Buffer.isBuffer(body) || body instanceof ReadableStream) return body;
  if (body instanceof Blob) return body.stream();
  if (body instanceof Response) return body.body ?? "";
  if (body instanceof Readable) return body;
  // Streams of old, and of packages that bring their own.
  if (typeof body === "object" && "pipe" in body) return new Readable().wrap(body as NodeJS.ReadableStream);
  return JSON.stringify(body);
}

/** Errors for HTTP carry `status` or `statusCode`, and `expose`; others are what they are for every handler. */
export function failureOf(thrown: unknown): Failure {
  if (typeof thrown !== "object" || thrown === null || ModhostError.is(thrown)) return classify(thrown);
  const { status, statusCode, expose, message } = thrown as Record<string, unknown>;
  const code = [status, statusCode].find((one) => Number.isInteger(one) && Number(one) >= 400 && Number(one) <= 599);
  if (typeof code !== "number") return classify(thrown);
  // The page says the phrase of the status anyway.
  const isWorthSaying =
    expose === true && typeof message === "string" && message !== "" && message !== STATUS_CODES[code];
  return { status: code, message: isWorthSaying ? message : undefined };
}

/** The headers that an error brings along for its answer. */
export function headersOf(thrown: unknown): ResponseHeaders {
  const headers = (thrown as { headers?: unknown } | null | undefined)?.headers;
  if (typeof headers !== "object" || headers === null) return {};
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name.toLowerCase().replaceAll("-", "_"), value]),
  );
}

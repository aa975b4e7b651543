/** A request with middleware before its apps: its answer goes through the request's own Koa context. */
import type { ServerResponse } from "node:http";
import type { Context } from "koa";
import { piecesOf } from "../util/body_stream.ts";
import { EventBody } from "./event_body.ts";
import { bodyOf, failureOf, headersOf, resultOf } from "./koa_answer.ts";
import type { Chain, LayeredRequest } from "./layer.ts";
import { exposeBody, type MiddlewareExchange, sendRest } from "./middleware.ts";
import { PieceStream } from "./piece_stream.ts";
import { pourHeaders } from "./raw_response.ts";
import { type Body, bodiless, type Response } from "./response.ts";
import type { Resolution } from "./routes.ts";
import { discard } from "./stream.ts";

/** An exchange that can begin after middleware has let it pass. */
export interface LayeredExchange extends MiddlewareExchange, LayeredRequest {
  begin(resolution: Resolution): void;
  refuse(status: number): void;
}

/**
 * Runs the middleware before the apps, and within it the handlers. What they answer is put into the context, where the
 * middleware may change it on its way out; then the host writes it. Never rejects.
 */
export async function answerThrough(chain: Chain, exchange: LayeredExchange, resolution: Resolution): Promise<void> {
  const { context } = exchange.request;
  const { response } = exchange;
  /** What the handlers answered: the body is as the context has it. */
  let deposited: { readonly body: unknown; readonly coding: unknown } | undefined;
  response.expose();
  const { release } = exposeBody(exchange, false);

  const handlers = () => {
    release();
    const { promise, resolve } = Promise.withResolvers<void>();
    exchange.settled = resolve;
    response.sink = (body) => {
      deposit(context, response, exchange.http2, body);
      deposited = { body: context.body, coding: context.response.get("Content-Encoding") };
      resolve();
    };
    exchange.begin(resolution);
    return promise;
  };

  try {
    await chain.run(context, handlers);
    const isOver = exchange.gone || (response.answered && deposited === undefined);
    if (isOver) discard(context.body);
    else finish(exchange, context, deposited);
  } catch (thrown) {
    if (deposited !== undefined) response.answered = false;
    response.sink = undefined;
    response.reclaim();
    discard(context.body);
    Object.assign(response.headers, headersOf(thrown));
    exchange.rejected(thrown, failureOf(thrown));
  } finally {
    release();
  }
}

/** Puts an answer of the host into the context, as if a middleware had given it. */
function deposit(context: Context, response: Response, http2: boolean, body: Body | undefined): void {
  const { headers, status } = response;
  const length = headers.content_length;
  const hadType = response.raw.hasHeader("Content-Type");
  context.status = response.status_code;
  if (status !== undefined && !http2) context.message = status.replace(/^\d{3} /, "");
  if (bodiless(response.status_code)) {
    discard(body);
    context.body = null;
  } else {
    context.body = koaBody(body);
    // Koa guesses a type from the body; the host sets none.
    if (!hadType) context.remove("Content-Type");
    if (length !== undefined) context.length = Number(length);
  }
  // A compressor would hold events back.
  if (body instanceof EventBody) context.compress = false;
  if (body instanceof EventBody) body.endWith(response.request.leaving);
  pourHeaders(headers, response.raw as ServerResponse, http2);
  response.headers = {};
}

/** A body of the host as Koa knows bodies. */
function koaBody(body: Body | undefined): unknown {
  if (body === undefined || body === null) return "";
  if (typeof body === "string") return body;
  if (body instanceof Uint8Array) return Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  const pieces = piecesOf(body);
  if (pieces === undefined) throw new TypeError(`A response body cannot be a ${typeof body}`);
  return "pipe" in pieces ? pieces : new PieceStream(pieces);
}

/** Writes what the context holds when all middleware has seen it. */
function finish(
  exchange: LayeredExchange,
  context: Context,
  deposited: { readonly body: unknown; readonly coding: unknown } | undefined,
): void {
  const { response } = exchange;
  response.sink = undefined;
  if (response.raw.headersSent || context.respond === false) {
    response.answered = true;
    if (context.respond !== false && !response.raw.writableEnded) sendRest(exchange, bodyOf(context) ?? "");
    return;
  }
  const coding = context.response.get("Content-Encoding");
  const result = resultOf(context);
  response.reclaim();
  if (result === undefined || typeof result === "number") {
    exchange.refuse(result ?? 404);
    return;
  }
  const { headers } = response;
  Object.assign(headers, result.headers);
  response.status_code = result.status_code ?? 200;
  response.status = result.status;
  const body = context.body instanceof PieceStream ? (context.body.untouched() ?? context.body) : result.body;
  // The host gives the length of what it has whole.
  if (typeof body === "string" || body instanceof Uint8Array) delete headers.content_length;
  // Other bytes under the same tag would not fit the ranges of the plain ones.
  const isRecoded = deposited !== undefined && context.body !== deposited.body && coding !== deposited.coding;
  if (isRecoded && typeof headers.etag === "string" && !headers.etag.startsWith("W/"))
    headers.etag = `W/${headers.etag}`;
  response.answered = true;
  try {
    response.write(body as Body);
  } catch (thrown) {
    exchange.fail(thrown);
  }
}

/**
 * Serves requests with middleware before their apps. Their responses pass through the request's Koa
 * context.
 */
import type { ServerResponse } from "node:http";
import { Readable } from "node:stream";
import type { Context } from "koa";
import { piecesOf } from "../../util/body_stream.ts";
import { readableThrown } from "../../util/errors.ts";
import { bodiless } from "../message/handler_result.ts";
import { PieceStream } from "../message/piece_stream.ts";
import { pourHeaders } from "../message/raw_response.ts";
import type { Body, Response } from "../message/response.ts";
import { discard } from "../message/stream.ts";
import { bodyOf, failureOf, headersOf, resultOf } from "../middleware/koa_response.ts";
import type { Chain, LayeredRequest } from "../middleware/layer.ts";
import { exposeBody, type MiddlewareExchange, sendRest, setMessages } from "../middleware/middleware.ts";
import { admitOrigin } from "../policy/cors.ts";
import type { Resolution } from "../routing/routes.ts";
import { EventBody } from "../sse/body.ts";

/** An exchange whose handlers run when the middleware calls `next`. */
export interface LayeredExchange extends MiddlewareExchange, LayeredRequest {
  begin(resolution: Resolution): void;
  refuse(status: number): void;
}

/**
 * Runs the middleware before the apps, and the handlers inside it. The handlers' response is put
 * into the context, where the middleware may change it; then the host writes it. Never rejects.
 */
export async function respondThrough(chain: Chain, exchange: LayeredExchange, resolution: Resolution): Promise<void> {
  const { context } = exchange.request;
  const { response } = exchange;
  /** The handlers' response, with the body as the context returns it. */
  let deposited: { readonly body: unknown; readonly coding: unknown } | undefined;
  // Middleware may refuse the request before the app runs.
  admitOrigin(resolution.cors, exchange);
  response.expose();
  // Koa's own `onerror` would write to `res`.
  context.onerror = (error: unknown) => {
    if (error !== undefined && error !== null) exchange.fail(error);
  };
  const { incoming, release } = exposeBody(exchange, false);
  setMessages(context, incoming, exchange);

  const { url, method } = context;

  const handlers = () => {
    release();
    if (context.url !== url || context.method !== method) warnOfRewriting(chain);
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
    const isOver = exchange.gone || (response.responded && deposited === undefined);
    if (isOver) discard(context.body);
    else finish(exchange, context, deposited);
  } catch (given) {
    const thrown = readableThrown(given);
    if (deposited !== undefined) response.responded = false;
    response.sink = undefined;
    response.reclaim();
    discard(context.body);
    Object.assign(response.headers, headersOf(thrown));
    exchange.rejected(thrown, failureOf(thrown));
  } finally {
    release();
  }
}

const warned = new WeakSet<Chain>();

/**
 * Warns once about middleware that changes the path or the method. Routes are found before
 * middleware runs, so that guards protect the app that the client requested.
 */
function warnOfRewriting(chain: Chain): void {
  if (warned.has(chain)) return;
  warned.add(chain);
  const names = chain.layers.map(({ name }) => name).join(", ");
  const text = "middleware before apps (%s) changed the path or the method, which only other middleware uses";
  chain.layers.at(-1)?.owner.log.warn(`${text}: the app is found by the request as the client sent it`, names);
}

/** Puts a response into the context, as if middleware had set it. */
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
  // A compressor would delay events.
  if (body instanceof EventBody) context.compress = false;
  if (body instanceof EventBody) body.endWith(response.request.leaving);
  pourHeaders(headers, response.raw as ServerResponse, http2);
  response.headers = {};
}

/** Converts a body to a form that Koa accepts. */
function koaBody(body: Body | undefined): unknown {
  if (body === undefined || body === null) return "";
  if (typeof body === "string") return body;
  if (body instanceof Uint8Array) return Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  const pieces = piecesOf(body);
  if (pieces === undefined) throw new TypeError(`A response body cannot be a ${typeof body}`);
  if (!(pieces instanceof Readable)) return new PieceStream(pieces);
  // A stream that has failed emits its error before anybody reads it.
  return pieces.on("error", () => undefined);
}

/** Writes the response in the context after all middleware has run. */
function finish(
  exchange: LayeredExchange,
  context: Context,
  deposited: { readonly body: unknown; readonly coding: unknown } | undefined,
): void {
  const { response } = exchange;
  response.sink = undefined;
  if (response.raw.headersSent || context.respond === false) {
    response.responded = true;
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
  // The host computes the length of a body that is complete.
  if (typeof body === "string" || body instanceof Uint8Array) delete headers.content_length;
  // A recoded body has other bytes, so its tag must not match ranges of the plain body.
  const isRecoded = deposited !== undefined && context.body !== deposited.body && coding !== deposited.coding;
  if (isRecoded && typeof headers.etag === "string" && !headers.etag.startsWith("W/"))
    headers.etag = `W/${headers.etag}`;
  response.responded = true;
  try {
    response.write(body as Body);
  } catch (thrown) {
    exchange.fail(thrown);
  }
}

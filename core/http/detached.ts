import { Socket } from "node:net";
import Koa, { type Context } from "koa";
import { IncomingMessage, ServerResponse } from "../util/node_http.ts";

const koa = new Koa();
// What fails in a detached context tells whoever made it; Koa has nobody to tell.
koa.on("error", () => undefined);

/** A Koa context for a GET whose answer goes nowhere: what middleware makes of it can be read off. */
export function detachedContext({ url = "/", accept }: { url?: string; accept?: string } = {}): Context {
  const request = new IncomingMessage(new Socket());
  request.method = "GET";
  request.url = url;
  if (accept !== undefined) request.headers.accept = accept;
  return koa.createContext(request, new ServerResponse(request));
}

import { IncomingMessage, ServerResponse } from "node:http";
import { Socket } from "node:net";
import Koa from "koa";

const koa = new Koa();

/**
 * The type that a client prefers, by its Accept header: one of `types` ("html", "json", "text", ...), the first of
 * them when it has no preference or accepts none.
 */
export function preferredType<T extends string>(accept: string | undefined, types: readonly [T, ...T[]]): T {
  if (accept === undefined) return types[0];
  const request = new IncomingMessage(new Socket());
  request.headers.accept = accept;
  const chosen = koa.createContext(request, new ServerResponse(request)).accepts(...types);
  return types.find((type) => type === chosen) ?? types[0];
}

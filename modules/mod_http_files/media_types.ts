import { IncomingMessage, ServerResponse } from "node:http";
import { Socket } from "node:net";
import { extname } from "node:path";
import type Koa from "koa";

const memoEntries = 500;

/** A function from file name to Content-Type: `map` (extension to type) goes before koa's table. */
export function mediaTypes(app: Koa, map: Readonly<Record<string, string>> = {}): (path: string) => string {
  const known = new Map<string, string>();
  for (const [extension, type] of Object.entries(map))
    known.set(`.${extension.replace(/^\./, "").toLowerCase()}`, type);
  return (path) => {
    const extension = extname(path).toLowerCase();
    const type = known.get(extension) ?? lookUp(app, extension);
    if (known.size < memoEntries) known.set(extension, type);
    return type;
  };
}

/** Text types come with `charset=utf-8`; what nobody knows is bytes. */
function lookUp(app: Koa, extension: string): string {
  const { response } = detachedContext(app, "/");
  response.type = extension;
  return response.get("Content-Type") || "application/octet-stream";
}

/** A koa context for a GET of `url` whose answer goes nowhere: what koa's middleware makes of it can be read off. */
export function detachedContext(app: Koa, url: string): Koa.Context {
  const request = new IncomingMessage(new Socket());
  request.method = "GET";
  request.url = url;
  return app.createContext(request, new ServerResponse(request));
}

/** Content of other modules: a handler, or middleware, that serves what a path leads to. */
import { Readable } from "node:stream";
import { parseCid } from "modhost/node";
import { HttpError } from "../../core/index.ts";
import type {
  GatewayPath,
  HttpEvent,
  HttpGateway,
  MiddlewareContext,
  ResponseFields,
  ServeCidOptions,
} from "../../core/types.ts";
import { Gateway, type GatewayDeps } from "./gateway.ts";
import type { Namespace, Place } from "./place.ts";
import { namesIn } from "./request/path.ts";

/** A path of the author, taken apart. */
type Home = Pick<Place, "namespace" | "root" | "below">;

export function gatewayFor(deps: GatewayDeps): HttpGateway {
  const gateway = new Gateway(deps);
  const fetching = new Gateway({ ...deps, settings: () => ({ ...deps.settings(), noFetch: false }) });
  const strict = new Gateway({ ...deps, settings: () => ({ ...deps.settings(), noFetch: true }) });
  const chosen = ({ fetch }: ServeCidOptions) => (fetch === undefined ? gateway : fetch ? fetching : strict);

  function serve(path: GatewayPath, options: ServeCidOptions) {
    const known = typeof path === "string" ? homeOf(path) : undefined;
    const place = async (event: HttpEvent, rest: string, prefix: string): Promise<Place> => {
      const home = known ?? homeOf(await (path as Exclude<GatewayPath, string>)(event));
      return {
        ...home,
        segments: namesIn(rest),
        slash: rest === "" || rest.endsWith("/"),
        prefix,
        website: "app",
        gateway: "",
      };
    };
    return (event: HttpEvent, rest: string, prefix: string) =>
      chosen(options).answer(event, () => place(event, rest, prefix));
  }

  return {
    serve_cid(path, options = {}) {
      const answer = serve(path, options);
      // On a route without a wildcard there is no rest.
      return (event, rest = "") => answer(event, rest, baseOf(event.request.path, rest));
    },
    koa(path, options = {}) {
      const answer = serve(path, options);
      return async (context, next) => {
        if (context.method !== "GET" && context.method !== "HEAD") return next();
        const { event } = context.state as { event: HttpEvent };
        const rest = decoded(context.path).replace(/^\//, "");
        const prefix = context.mountPath ?? baseOf(event.request.path, rest);
        pour(await answer(event, rest, prefix), context);
        return undefined;
      };
    },
  };
}

/** What the URL has before the rest, without a slash at the end. */
const baseOf = (path: string, rest: string): string => path.slice(0, path.length - rest.length).replace(/\/$/, "");

function decoded(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}

/** @throws {HttpError} 400 */
function homeOf(path: string): Home {
  const [, kind, rest = ""] = /^\/(ip[fn]s)\/(.+)$/s.exec(path) ?? [];
  const [root, ...below] = namesIn(rest);
  if (kind === undefined || root === undefined) {
    throw new HttpError(
      400,
      `${JSON.stringify(path)} is no content path: it must be /ipfs/CID or /ipns/NAME, with a path below it`,
    );
  }
  const namespace = kind as Namespace;
  try {
    if (namespace === "ipfs") parseCid(root);
  } catch (cause) {
    throw new HttpError(400, `${JSON.stringify(path)} is no content path: ${(cause as Error).message}`, { cause });
  }
  return { namespace, root, below };
}

function pour({ status_code = 200, headers = {}, body }: ResponseFields, context: MiddlewareContext): void {
  context.status = status_code;
  context.body = koaBody(body);
  // After the body, for which Koa sets some of its own.
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined)
      context.set(name.replaceAll("_", "-"), typeof value === "number" ? String(value) : [value].flat().map(String));
  }
}

/** Koa knows texts, buffers and streams. */
function koaBody(body: ResponseFields["body"] = ""): unknown {
  if (body instanceof Uint8Array) return Buffer.from(body.buffer, body.byteOffset, body.length);
  return typeof body === "object" && Symbol.asyncIterator in body ? Readable.from(body) : body;
}

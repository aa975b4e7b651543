/**
 * Serves content for other modules: as a handler, or as middleware, for everything below a path.
 */
import { Readable } from "node:stream";
import { parseCid } from "modhost/node";
import { HttpError } from "../../core/index.ts";
import type { HttpEvent, MiddlewareContext, ResponseFields } from "../../core/types.ts";
import type { ContentTarget, Namespace } from "./content_target.ts";
import { Gateway, type GatewayDeps } from "./gateway.ts";
import { unescapedBytes } from "./request/byte_path.ts";
import { namesIn } from "./request/path.ts";
import type { GatewayPath, HttpGateway, ServeCidOptions } from "./types.ts";

/** The parsed path that the module's author has chosen. */
type Home = Pick<ContentTarget, "namespace" | "root" | "below">;

export function gatewayFor(deps: GatewayDeps): HttpGateway {
  const gateway = new Gateway(deps);
  const fetching = new Gateway({ ...deps, settings: () => ({ ...deps.settings(), noFetch: false }) });
  const strict = new Gateway({ ...deps, settings: () => ({ ...deps.settings(), noFetch: true }) });
  const chosen = ({ fetch }: ServeCidOptions) => (fetch === undefined ? gateway : fetch ? fetching : strict);

  function serve(path: GatewayPath, options: ServeCidOptions) {
    const known = typeof path === "string" ? homeOf(path) : undefined;
    const targetOf = async (event: HttpEvent, rest: string, prefix: string): Promise<ContentTarget> => {
      const home = known ?? homeOf(await (path as Exclude<GatewayPath, string>)(event));
      return {
        ...home,
        segments: namesIn(rest),
        slash: rest === "" || rest.endsWith("/"),
        prefix,
        website: "app",
        gateway: "",
        // A module's website is always served in full, whatever the gateway allows for paths from
        // strangers.
        deserialized: true,
      };
    };
    return (event: HttpEvent, rest: string, prefix: string) =>
      chosen(options).respond(event, () => targetOf(event, rest, prefix));
  }

  return {
    serve_cid(path, options = {}) {
      const handler = serve(path, options);
      // A route without a wildcard has no rest.
      return (event, rest = "") => handler(event, rest, baseOf(event.request.path, rest));
    },
    koa(path, options = {}) {
      const handler = serve(path, options);
      return async (context, next) => {
        if (context.method !== "GET" && context.method !== "HEAD") return next();
        const { event } = context.state as { event: HttpEvent };
        const rest = unescapedBytes(context.path).replace(/^\//, "");
        const prefix = context.mountPath ?? baseOf(event.request.path, rest);
        pour(await handler(event, rest, prefix), context);
        return undefined;
      };
    },
  };
}

/** Returns the part of the URL before the rest, without a final slash. */
const baseOf = (path: string, rest: string): string => path.slice(0, path.length - rest.length).replace(/\/$/, "");

/** @throws {HttpError} 400 */
function homeOf(path: string): Home {
  const [, kind, rest = ""] = /^\/(ip[fn]s)\/(.+)$/s.exec(path) ?? [];
  const [root, ...below] = namesIn(rest);
  if (kind === undefined || root === undefined) {
    throw new HttpError(
      400,
      `${JSON.stringify(path)} is not a content path: it must be /ipfs/CID or /ipns/NAME, optionally with a path`,
    );
  }
  const namespace = kind as Namespace;
  try {
    if (namespace === "ipfs") parseCid(root);
  } catch (cause) {
    throw new HttpError(400, `${JSON.stringify(path)} is not a content path: ${(cause as Error).message}`, { cause });
  }
  return { namespace, root, below };
}

function pour({ status_code = 200, headers = {}, body }: ResponseFields, context: MiddlewareContext): void {
  context.status = status_code;
  context.body = koaBody(body);
  // Set after the body, because Koa sets some headers together with the body.
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined)
      context.set(name.replaceAll("_", "-"), typeof value === "number" ? String(value) : [value].flat().map(String));
  }
}

/** Koa supports strings, buffers and streams. */
function koaBody(body: ResponseFields["body"] = ""): unknown {
  if (body instanceof Uint8Array) return Buffer.from(body.buffer, body.byteOffset, body.length);
  return typeof body === "object" && Symbol.asyncIterator in body ? Readable.from(body) : body;
}

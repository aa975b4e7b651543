/**
 * Serves files and folders: `serve()` for the routes of other modules, and the app `files` for a
 * folder of its own.
 */
import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import type { Next } from "koa";
import { contextOf, encodePath, koaHandler } from "../../core/http/index.ts";
import type { DirectoryIndexEvent, Handler, HttpEvent, MiddlewareFunction, Module } from "../../core/types.ts";
import { Folders } from "./disk.ts";
import { type Found, locate, locateFile, statusOf, withRealPaths } from "./locate.ts";
import { options } from "./options.ts";
import {
  admitted,
  conditions,
  described,
  type FileContext,
  precompressed,
  ranges,
  sendNothing,
  small,
  whole,
} from "./response.ts";
import type { HttpFiles, ServeOptions } from "./types.ts";

export { options };
export const depends = ["http"];

export default function load(module: Module): HttpFiles {
  const defaultIndex = options.http_index_files.default;
  const folders = new Folders();
  const diskOf = (folder: string) => folders.diskOf(folder);

  function serve(given: string | ServeOptions): Handler {
    const settings = typeof given === "string" ? { path: given } : given;
    const { directory_index = false, index_files = defaultIndex, hidden = false, mime_map, max_age } = settings;
    const base = resolve(settings.path);
    if (!existsSync(base)) module.log.info("There is no %s to serve: 404 until it exists", base);

    /** Finds what the path names. For a folder, that is its index file or a listing. */
    async function named(context: FileContext, next: Next): Promise<unknown> {
      const { file } = context.state;
      const { argument } = file;
      const found = await locate(base, argument ?? "", { hidden, diskOf });
      if (typeof found === "number") return fail(context, found);
      const isExact = argument === undefined;
      const hasSlash = eventOf(context).request.path.endsWith("/");
      if (!found.stats.isDirectory()) {
        if (hasSlash && !isExact && argument !== "") return fail(context, 404);
        file.named = found;
        return next();
      }
      if (!hasSlash && !isExact) return redirectToFolder(context);
      for (const name of index_files) {
        file.named = await locateFile(found, join(found.path, name));
        if (file.named !== undefined) return next();
      }
      return directory_index ? list(module, context, found, hidden) : fail(context, 403);
    }

    const steps = [named, precompressed, described(mime_map, max_age), conditions, admitted, ranges, small, whole];
    const handle = koaHandler(...(steps as unknown as MiddlewareFunction[]));
    return async (event, argument: string | undefined) => {
      contextOf(event).state.file = { argument };
      return (await handle(event, argument)) ?? 404;
    };
  }

  const folder = module.get_option_path("http_files_dir");
  if (folder !== undefined) {
    const handler = serve({
      path: folder,
      directory_index: module.get_option_boolean("http_dir_listing") ?? false,
      index_files: module.get_option_array("http_index_files") ?? defaultIndex,
      hidden: module.get_option_boolean("http_files_hidden") ?? false,
    });
    module.provides("http", { route: { "GET /*": handler } });
  }
  return { serve };
}

/** A hook on `directory-index` makes the page of a folder. */
async function list(module: Module, context: FileContext, found: Found, hidden: boolean): Promise<void> {
  const { request, response } = eventOf(context);
  const real = await withRealPaths(found).catch(statusOf);
  if (real === undefined || typeof real === "number") return fail(context, real ?? 404);
  const { path, root } = real;
  const event: DirectoryIndexEvent = {
    path: request.path.endsWith("/") ? request.path : `${request.path}/`,
    full_path: path,
    root,
    hidden,
    request,
    response,
  };
  const page = await module.fire_event("directory-index", event);
  if (typeof page !== "string" && !(page instanceof Uint8Array)) return fail(context, 403);
  const { content_type = "text/html; charset=utf-8" } = response.headers;
  context.set("Content-Type", String(content_type));
  // The same bytes may be sent to many clients, so they are not copied.
  context.body = typeof page === "string" ? page : Buffer.from(page.buffer, page.byteOffset, page.byteLength);
}

function eventOf(context: FileContext): HttpEvent {
  return context.state.event as HttpEvent;
}

/** Sets the status and leaves the body to the error page. */
function fail(context: FileContext, status: number): void {
  context.status = status;
}

/** Redirects to the folder's own path, so that relative links in its pages work. */
function redirectToFolder(context: FileContext): void {
  const { path, url } = eventOf(context).request;
  context.set("Location", `${encodePath(path)}/${url.query === undefined ? "" : `?${url.query}`}`);
  sendNothing(context, 301);
}

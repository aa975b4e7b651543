/** Serves files and folders: `serve()` for the routes of other modules, and the app `files` for a folder of its own. */
import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { encodePath } from "../../core/http/index.ts";
import type {
  DirectoryIndexEvent,
  Handler,
  HandlerResult,
  HttpEvent,
  HttpFiles,
  Module,
  ServeOptions,
} from "../../core/types.ts";
import { type Found, locate, locateFile } from "./locate.ts";
import { options } from "./options.ts";
import { fileSender } from "./send.ts";

export { options };
export const depends = ["http"];

export default function load(module: Module): HttpFiles {
  const defaultIndex = options.http_index_files.default;

  function serve(given: string | ServeOptions): Handler {
    const settings = typeof given === "string" ? { path: given } : given;
    const { directory_index = false, index_files = defaultIndex, hidden = false } = settings;
    const base = resolve(settings.path);
    const send = fileSender(settings);
    if (!existsSync(base)) module.log.info("There is no %s to serve: 404 until it exists", base);

    return async (event, argument: string | undefined) => {
      const found = await locate(base, argument ?? "", hidden);
      if (typeof found === "number") return found;
      const exact = argument === undefined;
      const slash = event.request.path.endsWith("/");
      if (!found.stats.isDirectory()) return slash && !exact && argument !== "" ? 404 : send(event, found);
      if (!slash && !exact) return redirectToFolder(event);
      for (const name of index_files) {
        const index = await locateFile(found.root, join(found.path, name));
        if (index !== undefined) return send(event, index);
      }
      return directory_index ? list(event, found, hidden) : 403;
    };
  }

  async function list(
    { request, response }: HttpEvent,
    { path, root }: Found,
    hidden: boolean,
  ): Promise<HandlerResult> {
    const event: DirectoryIndexEvent = {
      path: request.path.endsWith("/") ? request.path : `${request.path}/`,
      full_path: path,
      root,
      hidden,
      request,
      response,
    };
    const page = await module.fire_event("directory-index", event);
    if (typeof page !== "string" && !(page instanceof Uint8Array)) return 403;
    response.headers.content_type ??= "text/html; charset=utf-8";
    return page;
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

/** Points to the folder's own path, so that relative links in its pages hold. */
function redirectToFolder({ request, response }: HttpEvent): number {
  response.headers.location = `${encodePath(request.path)}/${request.url.query === undefined ? "" : `?${request.url.query}`}`;
  return 301;
}

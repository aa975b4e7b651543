/** Mounts the API as an app of the host, at `/api/v0/...` and `/api/openapi.json`. */
import { httpMethods, keepUncompressed } from "../../../core/http/index.ts";
import type { Handler, Module, RouteTable } from "../../../core/types.ts";
import { openApi } from "../rpc/openapi.ts";
import type { Table } from "../rpc/table.ts";
import { Api, type ApiSettings } from "./api.ts";

/** With a base in the settings, it is at `BASE/api/v0/...`. */
export function mountApi(module: Module, settings: ApiSettings): void {
  const route = apiRoutes(new Api(settings), settings.table);
  const place = settings.base === undefined ? {} : { default_path: `${settings.base}/api` };
  module.provides("http", { ...place, route, ...uploads(settings), cors: { enabled: false } });
}

/** Bodies are read as they come, and wait for clients whose next file takes its time. */
export const uploads = ({ uploadPause = 0 }: Pick<ApiSettings, "uploadPause">) => ({
  streaming_uploads: true,
  upload_pause: uploadPause,
});

/** Routes every method, so that errors for unsupported methods also come from the API. */
export function apiRoutes(api: Api, table: Table): RouteTable {
  /** Made when they are asked for: what the level lists, and all that is served. */
  const documents: { [served: string]: string } = {};
  const route: RouteTable = {};
  const every = (path: `/${string}`, handler: Handler) => {
    for (const method of httpMethods) route[`${method} ${path}`] = handler;
  };
  every("/v0/*", (event, rest) => {
    // Clients know the answers byte for byte, and count on each piece of a stream as it comes.
    keepUncompressed(event);
    return api.answer(event, rest ?? "");
  });
  every("/openapi.json", (event) => {
    const served = new URLSearchParams(event.request.url.query ?? "").get("served") === "true";
    return api.document(event, () => (documents[String(served)] ??= openApi(table, { served })));
  });
  return route;
}

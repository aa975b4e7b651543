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
  module.provides("http", { ...place, route, streaming_uploads: true, cors: { enabled: false } });
}

/** Routes every method, so that errors for unsupported methods also come from the API. */
export function apiRoutes(api: Api, table: Table): RouteTable {
  let document: string | undefined;
  const route: RouteTable = {};
  const every = (path: `/${string}`, handler: Handler) => {
    for (const method of httpMethods) route[`${method} ${path}`] = handler;
  };
  every("/v0/*", (event, rest) => {
    // Clients know the answers byte for byte, and count on each piece of a stream as it comes.
    keepUncompressed(event);
    return api.answer(event, rest ?? "");
  });
  every("/openapi.json", (event) => api.document(event, () => (document ??= openApi(table))));
  return route;
}

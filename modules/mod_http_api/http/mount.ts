/** Mounts the API as an app of the host, at `/api/v0/...` and `/api/openapi.json`. */
import { httpMethods, keepUncompressed } from "../../../core/http/index.ts";
import type { Handler, Module, RouteTable } from "../../../core/types.ts";
import { openApi } from "../rpc/openapi.ts";
import type { Table } from "../rpc/table.ts";
import { Api, type ApiSettings } from "./api.ts";

/** If the settings have a base, the API is at `BASE/api/v0/...`. */
export function mountApi(module: Module, settings: ApiSettings): void {
  const route = apiRoutes(new Api(settings), settings.table);
  const path = settings.base === undefined ? {} : { default_path: `${settings.base}/api` };
  module.provides("http", { ...path, route, ...uploadOptions(settings), cors: { enabled: false } });
  // Pages of this origin may call without a token, so the gateway must keep content out of this
  // origin.
  module.add_item("trusts-own-origin", {});
}

/** Bodies are streamed, and clients may pause between files for `uploadPause` seconds. */
export const uploadOptions = ({ uploadPause = 0 }: Pick<ApiSettings, "uploadPause">) => ({
  streaming_uploads: true,
  upload_pause: uploadPause,
});

/** Returns routes for every method, so that the API itself also answers unsupported methods. */
export function apiRoutes(api: Api, table: Table): RouteTable {
  /**
   * The documents are built on first request: the commands that the level lists, and all that are
   * served.
   */
  const documents: { [served: string]: string } = {};
  const route: RouteTable = {};
  const every = (path: `/${string}`, handler: Handler) => {
    for (const method of httpMethods) route[`${method} ${path}`] = handler;
  };
  every("/v0/*", (event, rest) => {
    // Clients expect exact bytes, and each piece of a stream at once.
    keepUncompressed(event);
    return api.handle(event, rest ?? "");
  });
  every("/openapi.json", (event) => {
    const served = new URLSearchParams(event.request.url.query ?? "").get("served") === "true";
    return api.document(event, () => (documents[String(served)] ??= openApi(table, { served })));
  });
  return route;
}

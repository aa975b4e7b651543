/** The API as an app of the host: `/api/v0/...` and `/api/openapi.json`. */
import { METHODS } from "node:http";
import type { Handler, Module, RouteKey, RouteTable } from "../../core/types.ts";
import { Api, type ApiSettings } from "./api.ts";
import { openApi } from "./openapi.ts";

/** Every method is routed, so that its refusals, too, are the API's own. */
export function mountApi(module: Module, settings: ApiSettings): void {
  const api = new Api(settings);
  let document: string | undefined;
  const route: RouteTable = {};
  const every = (path: string, handler: Handler) => {
    for (const method of METHODS) route[`${method} ${path}` as RouteKey] = handler;
  };
  every("/v0/*", (event, rest) => api.answer(event, rest ?? ""));
  every("/openapi.json", (event) => api.document(event, () => (document ??= openApi(settings.table))));
  module.provides("http", { route, streaming_uploads: true, cors: { enabled: false } });
}

/** Content over plain HTTP, by its CID or by a name: the gateway of the node. */
import type { NodeModule } from "modhost/node";
import { httpMethods } from "../../core/http/index.ts";
import type { Handler, HttpEvent, Module, RouteTable } from "../../core/types.ts";
import { Gateway } from "./gateway.ts";
import { options } from "./options.ts";
import { placeOfPath } from "./request/path.ts";
import { answerHeaders, type GatewaySettings } from "./settings.ts";

export { options };
export const depends = ["http", "node"];
/** There is one node per process, shared by all virtual hosts. */
export const global = true;

type GatewayModule = Module<typeof options>;

export default function load(module: GatewayModule): void {
  const node = module.depends<NodeModule>("node");
  let settings = settingsOf(module);
  module.changed = () => void (settings = settingsOf(module));
  const gateway = new Gateway({ node, log: module.log, settings: () => settings });
  module.provides("http", { default_path: "/", route: pathRoutes(gateway), cors: { enabled: false } });
}

/** All methods, so that the gateway itself refuses what it does not have. */
function pathRoutes(gateway: Gateway): RouteTable {
  const route: RouteTable = {};
  for (const namespace of ["ipfs", "ipns"] as const) {
    const handler: Handler = (event: HttpEvent, rest = "") =>
      gateway.answer(event, (request) => placeOfPath(namespace, rest, request));
    for (const method of httpMethods) route[`${method} /${namespace}/*`] = handler;
  }
  return route;
}

function settingsOf(module: GatewayModule): GatewaySettings {
  const seconds = (name: "gateway_retrieval_timeout" | "gateway_max_request_duration") =>
    (module.get_option_period(name) ?? 0) * 1000;
  return {
    noFetch: module.get_option("gateway_no_fetch"),
    deserialized: module.get_option("gateway_deserialized_responses"),
    htmlErrors: module.get_option("gateway_html_errors"),
    headers: answerHeaders(module.get_option_object("gateway_headers") as Record<string, string | string[]>),
    maxRequests: module.get_option("gateway_max_concurrent_requests"),
    stallTime: seconds("gateway_retrieval_timeout"),
    totalTime: seconds("gateway_max_request_duration"),
    maxRangeFile: module.get_option_size("gateway_max_range_request_file_size") ?? 0,
  };
}

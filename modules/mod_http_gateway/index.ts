/** Serves content over plain HTTP, by its CID or by a name: the gateway of the node. */
import { isDeepStrictEqual } from "node:util";
import type { NodeModule } from "modhost/node";
import { RateLimit, rateOption } from "../../core/http/index.ts";
import type { Module } from "../../core/types.ts";
import { Gateway, type GatewayDeps } from "./gateway.ts";
import { readGatewaySpecs } from "./hosts/gateway_specs.ts";
import { hostClaims } from "./hosts/index.ts";
import { PublicGateways } from "./hosts/public_gateways.ts";
import { options } from "./options.ts";
import { serveAtRepoAddress } from "./repo_address.ts";
import { pathRoutes } from "./routes.ts";
import { routingRoutes } from "./routing/index.ts";
import { gatewayFor } from "./serve_cid.ts";
import { type GatewaySettings, responseHeaders, timerTime } from "./settings.ts";
import { trustingApps } from "./shared_origin.ts";
import type { HttpGateway } from "./types.ts";

export { options };
export const depends = ["http", "node"];
/** There is one node per process, shared by all virtual hosts. */
export const global = true;
export const shared = true;

type GatewayModule = Module<typeof options>;

export default function load(module: GatewayModule): HttpGateway {
  const node = module.depends<NodeModule>("node");
  let settings = settingsOf(module);
  let limit = limitOf(module, undefined);
  module.changed = () => {
    settings = settingsOf(module);
    limit = limitOf(module, limit);
  };
  const deps: GatewayDeps = { node, log: module.log, settings: () => settings };
  // The limit does not apply to content that other modules serve.
  const limited = { ...deps, limit: () => limit };
  const sharesOrigin = trustingApps(module as Module);
  const gateway = new Gateway({ ...limited, sharesOrigin });
  module.provides("http", {
    default_path: "/",
    route: { ...pathRoutes(gateway), ...routingRoutes(gateway, deps) },
    claims: hostClaims(gateway, deps.settings, sharesOrigin),
    streaming_uploads: true,
    cors: { enabled: false },
  });
  if (module.serves()) serveAtRepoAddress(module as Module, limited);
  const served = gatewayFor(deps);
  // For modules that can also work without a gateway, and therefore do not depend on one.
  module.add_item("content-gateway", served);
  return served;
}

/**
 * Returns the previous limit if its values have not changed, so that its counts continue. @throws
 * {ModhostError} OPTION_INVALID
 */
function limitOf(module: GatewayModule, previous: RateLimit | undefined): RateLimit | undefined {
  const rate = rateOption(module.get_option("gateway_rate"), module.get_option("gateway_burst"), "gateway_rate");
  return isDeepStrictEqual(rate, previous?.rate) ? previous : rate && new RateLimit(rate);
}

function settingsOf(module: GatewayModule): GatewaySettings {
  const seconds = (name: "gateway_retrieval_timeout" | "gateway_max_request_duration") =>
    timerTime((module.get_option_period(name) ?? 0) * 1000);
  return {
    noFetch: module.get_option("gateway_no_fetch"),
    routing: module.get_option("gateway_routing"),
    deserialized: module.get_option("gateway_deserialized_responses"),
    htmlErrors: module.get_option("gateway_html_errors"),
    publicGateways: new PublicGateways(readGatewaySpecs(module.get_option_object("gateway_public_gateways"))),
    dnslink: module.get_option("gateway_dnslink"),
    headers: responseHeaders(module.get_option_object("gateway_headers") as Record<string, string | string[]>),
    maxRequests: module.get_option("gateway_max_concurrent_requests"),
    stallTime: seconds("gateway_retrieval_timeout"),
    totalTime: seconds("gateway_max_request_duration"),
    writable: false,
    maxRangeFile: module.get_option_size("gateway_max_range_request_file_size") ?? 0,
  };
}

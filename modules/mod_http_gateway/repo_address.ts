/**
 * Serves content, `/version` and the redirect of `/` at `Addresses.Gateway` of the repo, in
 * addition to the read-only commands.
 */
import { versionFacts } from "modhost/node";
import type { Module, RouteTable } from "../../core/types.ts";
import { followConfig } from "./config_settings.ts";
import { Gateway, type GatewayDeps } from "./gateway.ts";
import { hostClaims } from "./hosts/index.ts";
import { p2pRoutes } from "./p2p_proxy/index.ts";
import { pathRoutes } from "./routes.ts";
import { routingRoutes } from "./routing/index.ts";

/**
 * The module that listens there mounts items of this kind:
 * `{ path, route, claims, tunnels, relays }`.
 */
const KIND = "gateway-page";

/** The host's rate limit applies here, too, because the config of the repo has none. */
export function serveAtRepoAddress(module: Module, { node, limit }: Pick<GatewayDeps, "node" | "limit">): void {
  const settings = followConfig(node.lowLevel.repo.config, (sentence) => module.log.warn("%s", sentence));
  module.on_release("the gateway's part of the config", () => settings.end());
  const deps = { node, log: module.log, settings: () => settings.now, ...(limit && { limit }) };
  const gateway = new Gateway(deps);
  const route: RouteTable = {
    ...pathRoutes(gateway),
    ...routingRoutes(gateway, deps),
    "GET /version": () => ({
      headers: { ...settings.now.headers, content_type: "text/plain; charset=utf-8" },
      body: versionText(),
    }),
    "GET /": () => {
      const { rootRedirect, headers } = settings.now;
      return rootRedirect === ""
        ? undefined
        : { status_code: 302, headers: { ...headers, location: rootRedirect }, body: "" };
    },
  };
  module.add_item(KIND, { path: "/", route, claims: hostClaims(gateway, () => settings.now), tunnels: true });
  const services = p2pRoutes(gateway, { ...deps, isOn: () => settings.now.p2pProxy });
  module.add_item(KIND, { path: "/p2p", route: services, relays: true });
}

function versionText(): string {
  const { version, commit } = versionFacts();
  const client = `go-ipfs/${version}/${commit}`;
  return `Commit: ${commit}\nClient Version: ${client}\nProtocol Version: ipfs/0.1.0\n`;
}

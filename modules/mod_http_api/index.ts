/** The RPC API of the node, under `/api/v0`. */
import type { Node, NodeModule } from "modhost/node";
import type { ListeningPort, Module } from "../../core/types.ts";
import { multibaseTable, table } from "./commands/index.ts";
import { multiaddrOf, reachable } from "./http/addresses.ts";
import type { ApiSettings } from "./http/api.ts";
import type { ConfiguredHeaders } from "./http/cors.ts";
import { type Listening, openListeners } from "./http/listeners.ts";
import { mountApi } from "./http/mount.ts";
import { tokensFrom } from "./http/tokens.ts";
import { options } from "./options.ts";
import { CommandLog } from "./rpc/command_log.ts";

export { options };
export const depends = ["http", "node"];
/** There is one node per process, shared by all virtual hosts. */
export const global = true;

/** Returned by `module.depends("http_api")`. */
export interface HttpApi {
  /** Addresses of the listeners besides the host's own ports. */
  readonly listening: Listening;
}

type ApiModule = Module<typeof options>;

/** With `required`, loading fails if an address of the node's configuration cannot be opened. */
export default function load(module: ApiModule, required = false): HttpApi {
  const node = module.depends<NodeModule>("node");
  let listening: Listening = { api: [], gateway: [] };
  const api: ApiSettings = {
    table: module.get_option_string("api_pubsub_wire") === "multibase" ? multibaseTable() : table,
    log: new CommandLog(),
    tokens: tokensFrom(module.get_option("api_tokens")),
    hosts: new Set(module.get_option_array("api_hosts")?.map((name) => name.toLowerCase())),
    headers: () => (node.isOpen ? headersOf(node) : {}),
    prepare: () => (node.isOpen ? undefined : node.open()),
    get node() {
      return node.isOpen ? node : undefined;
    },
    operator: { stop: () => module.stop_server(), mayEdit: module.get_option_boolean("api_config_edit") === true },
    fault: (command, thrown) =>
      module.log.error("command %s failed: %s", command, thrown instanceof Error ? thrown.stack : String(thrown)),
  };
  if (module.serves()) listening = openListeners(module as Module, node.lowLevel.repo, api, required);

  module.ready = () => {
    const { repo } = node.lowLevel;
    return repo.announceApi(addressOf(module.listening()) ?? listening.api.map(reachable)[0]);
  };
  module.hook("server-stopping", () => (node.isOpen ? node.lowLevel.repo.announceApi(undefined) : undefined));
  mountApi(module as Module, api);
  return {
    get listening() {
      return listening;
    },
  };
}

/** The host's first plain HTTP address as a multiaddr. */
function addressOf(ports: readonly ListeningPort[]): string | undefined {
  const found = ports.find(({ service }) => service === "http");
  return found && multiaddrOf(found);
}

/** `API.HTTPHeaders`, with null lists as empty ones. */
function headersOf(node: Node): ConfiguredHeaders {
  const configured = Object.entries(node.lowLevel.repo.config.value("API.HTTPHeaders") ?? {});
  return Object.fromEntries(configured.map(([name, values]) => [name, values ?? []]));
}

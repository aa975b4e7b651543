/** The RPC API of the node, under `/api/v0`. */
import { randomBytes } from "node:crypto";
import type { NodeModule } from "modhost/node";
import { addressesOf, knownToken } from "../../core/http/index.ts";
import type { ListeningPort, Module } from "../../core/types.ts";
import { pubsubIn, table } from "./commands/index.ts";
import { multiaddrOf, reachable } from "./http/addresses.ts";
import type { ApiSettings } from "./http/api.ts";
import { type Authorization, authorizationsFrom } from "./http/authorizations.ts";
import { type ConfiguredHeaders, sendableHeaders } from "./http/cors.ts";
import { commandFigures } from "./http/figures.ts";
import { GatewayFile } from "./http/gateway_file.ts";
import { type Listening, openListeners, withFields } from "./http/listeners.ts";
import { mountApi } from "./http/mount.ts";
import { openPlaces, placesFrom } from "./http/places.ts";
import { scopeFault } from "./http/token_scopes.ts";
import { type Token, tokensFrom } from "./http/tokens.ts";
import { mountWebUi, type WebUi } from "./http/webui.ts";
import { options } from "./options.ts";
import { CommandLog } from "./rpc/command_log.ts";
import type { LevelName } from "./rpc/levels.ts";

export { options };
export const depends = ["http", "node"];
/** There is one node per process, shared by all virtual hosts. */
export const global = true;
export const shared = true;

/** Returned by `module.depends("http_api")`. */
export interface HttpApi {
  /** Addresses of the listeners besides the host's own ports. */
  readonly listening: Listening;
  /** What is at `/webui` of them. */
  readonly webui: WebUi;
}

type ApiModule = Module<typeof options>;

export interface LoadSettings {
  /** Loading fails if an address of the node's configuration cannot be opened. */
  readonly required?: boolean;
  /** Callers are the program itself: whatever the configuration asks others for, it asks them for no secret. */
  readonly trusted?: boolean;
}

export default function load(module: ApiModule, { required = false, trusted = false }: LoadSettings = {}): HttpApi {
  const node = module.depends<NodeModule>("node");
  let listening: Listening = { api: [], gateway: [] };
  const places = placesFrom(module.get_option("api_listeners"));
  const wire = module.get_option("api_pubsub_wire");
  const tableAt = (level: LevelName) => table.at(level, wire && pubsubIn(wire));
  const tokens = tokensFrom(module.get_option("api_tokens"));
  const own = ownToken();
  const withOwn = [...tokens, own.known];
  const requireToken = !trusted && module.get_option_boolean("api_require_token") === true;
  const authorizations = trusted ? () => undefined : knownAuthorizations(module, node);
  const isGuarded = () => requireToken || authorizations() !== undefined;
  const figures = commandFigures();
  module.provides("metrics", figures.provider);
  const api: ApiSettings = {
    table: tableAt(module.get_option("api_level")),
    log: new CommandLog(),
    figures,
    get tokens() {
      return isGuarded() ? withOwn : tokens;
    },
    serverTokens: module.tokens,
    requireToken,
    get authorizations() {
      return authorizations();
    },
    ...callersIn(module),
    headers: sentHeaders(module, node),
    prepare: () => (node.isOpen ? undefined : node.open()),
    get node() {
      return node.isOpen ? node : undefined;
    },
    operator: { stop: () => module.stop_server(), mayEdit: module.get_option_boolean("api_config_edit") === true },
    fault: (command, thrown) =>
      module.log.error("command %s failed: %s", command, thrown instanceof Error ? thrown.stack : String(thrown)),
  };
  module.hook("token-scope", ({ scope }) => scopeFault(scope, api.table));
  const gatewayFile = new GatewayFile(module as Module, node, () => listening.gateway);
  let isReady = false;
  /** Where command lines find the API, and the token of the repo's owner where callers need one. */
  const announce = () => {
    const address = addressOf(module.listening()) ?? listening.api.map(reachable)[0];
    if (!isReady) return undefined;
    const telling = node.lowLevel.repo.announceApi(address, isGuarded() ? own.secret : undefined);
    return Promise.all([telling, gatewayFile.keep()]);
  };
  if (module.serves()) {
    const { repo } = node.lowLevel;
    listening = openListeners(module as Module, repo, api, { required, changed: announce });
    openPlaces(module as Module, places, (level) => withFields(api, { table: tableAt(level) }));
    module.on_release("the token of the config", repo.config.follow(["API.Authorizations"], announce));
  }

  module.ready = () => {
    // Whatever is wrong with them is told at the start, and not with the first answer.
    api.headers();
    isReady = true;
    return announce();
  };
  module.hook("server-stopping", () => {
    if (!node.isOpen) return undefined;
    return Promise.all([node.lowLevel.repo.announceApi(undefined), gatewayFile.leave()]);
  });
  mountApi(module as Module, api);
  const webui = mountWebUi(module);
  return {
    webui,
    get listening() {
      return listening;
    },
  };
}

/** Who needs no token, by the name that is asked for and by the address of the connection; and how long callers may pause. */
function callersIn(module: ApiModule): Pick<ApiSettings, "hosts" | "relays" | "uploadPause"> {
  const trusted = module.get_option_array("api_trusted_callers") ?? [];
  return {
    uploadPause: module.get_option_period("api_upload_pause"),
    hosts: new Set(module.get_option_array("api_hosts")?.map((name) => name.toLowerCase())),
    ...(trusted.length > 0 && { relays: addressesOf(trusted, "api_trusted_callers") }),
  };
}

/** The host's first plain HTTP address as a multiaddr. */
function addressOf(ports: readonly ListeningPort[]): string | undefined {
  const found = ports.find(({ service }) => service === "http");
  return found && multiaddrOf(found);
}

/** `API.HTTPHeaders` as they are now, less those that cannot be sent; worked out anew after each change. */
function sentHeaders({ log }: ApiModule, node: NodeModule): () => ConfiguredHeaders {
  let read: { readonly from: unknown; readonly headers: ConfiguredHeaders } = { from: undefined, headers: {} };
  return () => {
    if (!node.isOpen) return {};
    const from = node.lowLevel.repo.config.value("API.HTTPHeaders");
    if (read.from !== from) {
      const lists = Object.entries(from ?? {}).map(([name, values]) => [name, values ?? []] as const);
      read = { from, headers: sendableHeaders(Object.fromEntries(lists), (sentence) => log.warn("%s", sentence)) };
    }
    return read.headers;
  };
}

/** `API.Authorizations` as they are now; worked out anew after each change. */
function knownAuthorizations({ log }: ApiModule, node: NodeModule): () => readonly Authorization[] | undefined {
  let read: { readonly from: unknown; readonly known: readonly Authorization[] | undefined } | undefined;
  return () => {
    if (!node.isOpen) return read?.known;
    const from = node.lowLevel.repo.config.value("API.Authorizations");
    if (read === undefined || read.from !== from) {
      read = { from, known: authorizationsFrom(from, (sentence) => log.warn("%s", sentence)) };
    }
    return read.known;
  };
}

/** A token of this start, for the command line of the repo's owner. */
function ownToken(): { readonly secret: string; readonly known: Token } {
  const secret = randomBytes(32).toString("base64url");
  return { secret, known: { ...knownToken(secret), paths: undefined } };
}

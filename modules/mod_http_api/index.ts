/** The RPC API of the node, under `/api/v0`. */
import { randomBytes } from "node:crypto";
import type { NodeModule } from "modhost/node";
import { addressesOf, knownToken } from "../../core/http/index.ts";
import type { ListeningPort, Module } from "../../core/types.ts";
import { pubsubIn, table } from "./commands/index.ts";
import { multiaddrOf, reachable } from "./http/addresses.ts";
import type { ApiSettings } from "./http/api.ts";
import { type Authorization, authorizationsFrom } from "./http/authorizations.ts";
import { createCommandMetrics } from "./http/command_metrics.ts";
import { type ConfiguredHeaders, sendableHeaders } from "./http/cors.ts";
import { extraListenersFrom, openExtraListeners } from "./http/extra_listeners.ts";
import { GatewayFile } from "./http/gateway_file.ts";
import { type Listening, openListeners, withFields } from "./http/listeners.ts";
import { mountApi } from "./http/mount.ts";
import { type Token, tokensFrom } from "./http/tokens.ts";
import { mountWebUi, type WebUi } from "./http/webui.ts";
import { options } from "./options.ts";
import { CommandLog } from "./rpc/command_log.ts";
import type { LevelName } from "./rpc/levels.ts";
import { scopesFor } from "./scopes.ts";

export { options };
export const depends = ["http", "node"];
/** There is one node per process, and all virtual hosts share it. */
export const global = true;
export const shared = true;

/** The exports of the module, which `module.depends("http_api")` returns. */
export interface HttpApi {
  /** Addresses of the listeners in addition to the host's own ports. */
  readonly listening: Listening;
  /** The front end at `/webui`. */
  readonly webui: WebUi;
}

type ApiModule = Module<typeof options>;

export interface LoadSettings {
  /** Whether loading fails if an address of the node's configuration cannot be opened. */
  readonly required?: boolean;
  /**
   * Whether all calls come from the program itself. They then need no secret, whatever the
   * configuration requires.
   */
  readonly trusted?: boolean;
}

export default function load(module: ApiModule, { required = false, trusted = false }: LoadSettings = {}): HttpApi {
  const node = module.depends<NodeModule>("node");
  const webui = mountWebUi(module);
  let listening: Listening = { api: [], gateway: [] };
  const extraListeners = extraListenersFrom(module.get_option("api_listeners"));
  const wire = module.get_option("api_pubsub_wire");
  const tableAt = (level: LevelName) => table.at(level, wire && pubsubIn(wire));
  const tokens = tokensFrom(module.get_option("api_tokens"));
  const own = ownToken();
  const withOwn = [...tokens, own.known];
  const requireToken = !trusted && module.get_option_boolean("api_require_token") === true;
  const authorizations = trusted ? () => undefined : knownAuthorizations(module, node);
  const isGuarded = () => requireToken || authorizations() !== undefined;
  const metrics = createCommandMetrics();
  module.provides("metrics", metrics.provider);
  const api: ApiSettings = {
    table: tableAt(module.get_option("api_level")),
    log: new CommandLog(),
    metrics,
    get tokens() {
      return isGuarded() ? withOwn : tokens;
    },
    serverTokens: module.tokens,
    requireToken,
    get authorizations() {
      return authorizations();
    },
    ...callersIn(module, webui),
    headers: sentHeaders(module, node),
    prepare: () => (node.isOpen ? undefined : node.open()),
    get node() {
      return node.isOpen ? node : undefined;
    },
    operator: { stop: () => module.stop_server(), mayEdit: module.get_option_boolean("api_config_edit") === true },
    fault: (command, thrown) =>
      module.log.error("command %s failed: %s", command, thrown instanceof Error ? thrown.stack : String(thrown)),
  };
  for (const kind of scopesFor(api.table)) module.provides("token-scope", kind);
  const gatewayFile = new GatewayFile(module as Module, node, () => listening.gateway);
  let isReady = false;
  /**
   * Publishes the address of the API in the repo for command lines, with the token of the repo's
   * owner if callers need one.
   */
  const announce = () => {
    const address = addressOf(module.listening()) ?? listening.api.map(reachable)[0];
    if (!isReady) return undefined;
    const telling = node.lowLevel.repo.announceApi(address, isGuarded() ? own.secret : undefined);
    return Promise.all([telling, gatewayFile.enable()]);
  };
  if (module.serves()) {
    const { repo } = node.lowLevel;
    listening = openListeners(module as Module, repo, api, { required, changed: announce });
    openExtraListeners(module as Module, extraListeners, (level) => withFields(api, { table: tableAt(level) }));
    module.on_release("the token of the config", repo.config.follow(["API.Authorizations"], announce));
  }

  module.ready = () => {
    // Reports invalid headers at the start rather than at the first response.
    api.headers();
    isReady = true;
    return announce();
  };
  module.hook("server-stopping", () => {
    if (!node.isOpen) return undefined;
    return Promise.all([node.lowLevel.repo.announceApi(undefined), gatewayFile.disable()]);
  });
  mountApi(module as Module, api);
  return {
    webui,
    get listening() {
      return listening;
    },
  };
}

/**
 * Returns the settings that depend on callers: host names and addresses that need no token, content
 * pages that may call, and how long an upload may pause.
 */
function callersIn(
  module: ApiModule,
  { content }: WebUi,
): Pick<ApiSettings, "hosts" | "relays" | "ownContent" | "uploadPause"> {
  const trusted = module.get_option_array("api_trusted_callers") ?? [];
  return {
    uploadPause: module.get_option_period("api_upload_pause"),
    hosts: new Set(module.get_option_array("api_hosts")?.map((name) => name.toLowerCase())),
    ownContent: content === undefined ? [] : [content],
    ...(trusted.length > 0 && { relays: addressesOf(trusted, "api_trusted_callers") }),
  };
}

/** Returns the host's first plain HTTP address as a multiaddr. */
function addressOf(ports: readonly ListeningPort[]): string | undefined {
  const found = ports.find(({ service }) => service === "http");
  return found && multiaddrOf(found);
}

/**
 * Returns the current `API.HTTPHeaders` without those that cannot be sent; computed again after
 * each change.
 */
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

/** Returns the current `API.Authorizations`; computed again after each change. */
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

/** Creates a token for the command line of the repo's owner; it is valid until the next start. */
function ownToken(): { readonly secret: string; readonly known: Token } {
  const secret = randomBytes(32).toString("base64url");
  return { secret, known: { ...knownToken(secret), paths: undefined } };
}

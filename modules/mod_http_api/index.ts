/** The RPC API of the node, under `/api/v0`, and the node itself. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { ListeningPort, Module } from "../../core/types.ts";
import { createNode, type Node, type NodeModule } from "../mod_node/index.ts";
import { collectPeriodically } from "../mod_node/periodic_gc.ts";
import { HeldNode } from "../mod_node/shared_node.ts";
import { lockHolder } from "../mod_node/storage/repo/lock.ts";
import { isProfile, profiles } from "../mod_node/storage/repo/profiles.ts";
import { NodeError } from "../mod_node/util/errors.ts";
import { multibaseTable, table } from "./commands/index.ts";
import { multiaddrOf, ownEndpoints, reachable } from "./http/addresses.ts";
import type { ApiSettings } from "./http/api.ts";
import type { ConfiguredHeaders } from "./http/cors.ts";
import { type Listening, openListeners } from "./http/listeners.ts";
import { mountApi } from "./http/mount.ts";
import { tokensFrom } from "./http/tokens.ts";
import { options } from "./options.ts";
import { CommandLog } from "./rpc/command_log.ts";

export { options };
export const depends = ["http"];
/** One node, whatever hosts there are. */
export const global = true;

/** What `module.depends("http_api")` gives. */
export interface HttpApi extends NodeModule {
  /** Where it is listened on beside the host's own ports. */
  readonly listening: Listening;
}

type ApiModule = Module<typeof options>;

/**
 * With a node that was opened before, that is served, and closed in the end; all addresses of its configuration must be
 * free then.
 */
export default async function load(module: ApiModule, opened?: Node): Promise<HttpApi> {
  const settings = nodeSettings(module);
  let held: HeldNode | undefined;
  let listening: Listening = { api: [], gateway: [] };
  let opening: Promise<void> | undefined;
  const own = () => {
    if (held === undefined) throw new Error("The node has not been opened yet");
    return held.node;
  };
  const take = (taken: HeldNode) => {
    held = taken;
    module.on_release("the node", taken.hold(), "node");
    if (!module.serves()) return;
    listening = openListeners(module as Module, taken.node.repo, api, opened !== undefined);
    if (module.get_option_boolean("api_gc") === true) collectPeriodically(module as Module, taken.node);
  };
  const open = async () => take(await openNode(module, settings));

  const api: ApiSettings = {
    table: module.get_option_string("api_pubsub_wire") === "multibase" ? multibaseTable() : table,
    log: new CommandLog(),
    tokens: tokensFrom(module.get_option("api_tokens")),
    hosts: new Set(module.get_option_array("api_hosts")?.map((name) => name.toLowerCase())),
    headers: () => (held === undefined ? {} : headersOf(held.node)),
    prepare: () =>
      held === undefined
        ? (opening ??= open().finally(() => {
            opening = undefined;
          }))
        : undefined,
    get node() {
      return held?.node;
    },
    operator: { stop: () => module.stop_server(), mayEdit: module.get_option_boolean("api_config_edit") === true },
    fault: (command, thrown) =>
      module.log.error("command %s failed: %s", command, thrown instanceof Error ? thrown.stack : String(thrown)),
  };

  module.save = () => held;
  module.restore = async (former: unknown) => {
    if (!(former instanceof Object)) return;
    const { settings: old } = former as HeldNode;
    if (old === JSON.stringify(settings)) take(former as HeldNode);
    else await open();
  };
  if (opened !== undefined) take(heldBy(module, opened, settings));
  else if (module.serves() && module.reloading !== true) await open();

  module.ready = () => {
    const node = own();
    void node
      .goOnline()
      .catch((error: Error) => module.log.error("the node stays without a network: %s", error.message));
    return node.repo.announceApi(addressOf(module.listening()) ?? listening.api.map(reachable)[0]);
  };
  module.hook("server-stopping", () => held?.node.repo.announceApi(undefined));
  mountApi(module as Module, api);
  return {
    get node() {
      return own();
    },
    get listening() {
      return listening;
    },
  };
}

interface NodeSettings {
  readonly repo: string;
  readonly data: string | undefined;
  readonly profile: string | undefined;
  readonly offline: boolean;
  readonly pubsub: boolean;
  readonly namesOverPubsub: boolean;
}

function nodeSettings(module: ApiModule): NodeSettings {
  return {
    repo: module.get_option_path("api_repo") ?? join(module.data_path(), "repo"),
    data: module.get_option_path("api_data"),
    profile: profileOf(module),
    offline: module.get_option_boolean("api_offline") === true,
    pubsub: module.get_option_boolean("api_pubsub") === true,
    namesOverPubsub: module.get_option_boolean("api_namesys_pubsub") === true,
  };
}

/** One or several, separated by commas. @throws ModhostError OPTION_INVALID */
function profileOf(module: ApiModule): string | undefined {
  const given = module.get_option_string("api_profile");
  const names = given?.split(",").filter((name) => name !== "") ?? [];
  return names.every(isProfile) ? given : module.get_option_enum("api_profile", Object.keys(profiles));
}

/** @throws Error that names the folder: the node's own texts need not */
async function openNode(module: ApiModule, settings: NodeSettings): Promise<HeldNode> {
  try {
    const node = await createNode({
      ...settings,
      apiAddress: addressOf(module.listening()) ?? configuredAddress(module as Module),
      onNotice: (sentence) => module.log.warn("%s", sentence),
    });
    if (node.repo.isNew) module.log.info("made the repo %s of %s", node.repo.path, node.repo.identity.peerId);
    return heldBy(module, node, settings);
  } catch (error) {
    const locked = error instanceof NodeError && error.code === "REPO_LOCKED";
    const reason = locked ? await lockedBy(settings) : (error as Error).message;
    throw new Error(`the repo ${settings.repo} does not open: ${reason}`, { cause: error });
  }
}

/** For operators, who can do something about it. */
async function lockedBy({ repo, data }: NodeSettings): Promise<string> {
  const holders = await Promise.all([repo, ...(data === undefined ? [] : [data])].map(lockHolder));
  const holder = holders.find((pid) => pid !== undefined);
  const api = await readFile(join(repo, "api"), "utf8").catch(() => "");
  const who = holder === undefined ? "another program" : `process ${holder}`;
  const where = api === "" ? "" : ` (its API: ${api.trim()})`;
  return `it is in use by ${who}${where}: stop that one, or set the option api_repo to another folder`;
}

/** What the node logs, the host does. */
function heldBy(module: ApiModule, node: Node, settings: NodeSettings): HeldNode {
  node.log.listen(({ level, system, message }) =>
    module.log(level === "debug" || level === "info" || level === "warn" ? level : "error", "%s: %s", system, message),
  );
  return new HeldNode(node, JSON.stringify(settings));
}

/** The host's first plain HTTP address as a multiaddr. */
function addressOf(ports: readonly ListeningPort[]): string | undefined {
  const found = ports.find(({ service }) => service === "http");
  return found && multiaddrOf(found);
}

/** Where it will listen, as far as the options tell. */
function configuredAddress(module: Module): string | undefined {
  const [first] = ownEndpoints(module);
  return first && multiaddrOf(first);
}

/** `API.HTTPHeaders`; a name without a list has none. */
function headersOf(node: Node): ConfiguredHeaders {
  const configured = Object.entries(node.repo.config.value("API.HTTPHeaders") ?? {});
  return Object.fromEntries(configured.map(([name, values]) => [name, values ?? []]));
}

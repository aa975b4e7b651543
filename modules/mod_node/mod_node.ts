/**
 * The node as a module of the host. It opens one repo; modules that depend on it share the node.
 * The library is imported as `modhost/node` so that reloading the module evaluates only this file
 * and `module/` again, and keeps the node.
 */
import { readFile, stat } from "node:fs/promises";
import { isIPv6 } from "node:net";
import { join } from "node:path";
import {
  createNode,
  failure,
  isAgentVersion,
  isProfile,
  lockHolder,
  type Node,
  NodeError,
  type NodeModule,
  nodeMetrics,
  pendingOpens,
  profiles,
  retryAfter,
  type SharedStoreSettings,
} from "modhost/node";
import type { Module } from "../../core/types.ts";
import { followDamage } from "./module/follow_damage.ts";
import { followDenylists } from "./module/follow_denylists.ts";
import { followFile } from "./module/follow_file.ts";
import { options } from "./module/options.ts";
import { collectPeriodically } from "./module/periodic_gc.ts";
import { SharedNode } from "./module/shared_node.ts";

export { options };
/** There is one node per process, shared by all virtual hosts. */
export const global = true;
export const shared = true;

type OwnModule = Module<typeof options>;

/**
 * The part of `load_timeout` that a start waits for the node. After that the host serves without
 * it, and loads it once it is open.
 */
const SHARE_OF_LOADING = 0.5;
/** Maximum milliseconds for later attempts, because other changes of the host wait meanwhile. */
const MAX_LATER_MS = 5000;

/**
 * If `opened` is given, that node is used instead of opening one, and is closed with the module.
 */
export default async function load(module: OwnModule, opened?: Node): Promise<NodeModule> {
  const settings = settingsOf(module);
  let current: SharedNode | undefined;
  let opening: Promise<void> | undefined;
  const take = (taken: SharedNode) => {
    current = taken;
    module.on_release("the node", taken.hold(), "node");
    if (module.serves() && module.get_option_boolean("node_gc") === true) {
      collectPeriodically(module as Module, taken.node.lowLevel);
    }
    if (!module.serves()) return;
    followFile(module as Module, taken.node.lowLevel);
    followDenylists(module as Module, taken.node.lowLevel);
    followDamage(module as Module, taken.node.lowLevel);
  };
  const open = async (isPatient: boolean) => take(await openShared(module, settings, isPatient));

  module.save = () => current;
  module.restore = async (previous: unknown) => {
    if (!(previous instanceof Object)) return;
    const { settings: old } = previous as SharedNode;
    if (old === JSON.stringify(settings)) take(previous as SharedNode);
    else await open(false);
  };
  if (opened !== undefined) take(sharedNode(module, opened, settings));
  else if (module.serves() && module.reloading !== true) await open(false);

  const collect = () => current?.node.metrics.collect() ?? [];
  module.provides("metrics", { metrics: nodeMetrics, collect });

  module.provides("health", { problem: () => current?.node.lowLevel.problem });

  module.provides("backup", {
    snapshot: async (signal) => {
      if (current === undefined) await members.open();
      return members.lowLevel.hold(signal);
    },
  });

  module.ready = () => {
    void current?.node
      .goOnline()
      .catch((error: Error) => module.log.error("the node stays without a network: %s", error.message));
  };
  const members = nodeModule(
    () => current?.node,
    async () => {
      if (current === undefined) {
        await (opening ??= open(true).finally(() => {
          opening = undefined;
        }));
      }
    },
  );
  return members;
}

/**
 * A proxy for the current node: members are looked up at each use, since a reload may replace the
 * node.
 */
function nodeModule(own: () => Node | undefined, open: () => Promise<void>): NodeModule {
  const node = () => {
    const found = own();
    if (found === undefined) throw new Error("The node has not been opened yet");
    return found;
  };
  const close = async () => undefined;
  return new Proxy({ open, close, stop: close, [Symbol.asyncDispose]: close } as unknown as NodeModule, {
    get: (members, name) => {
      if (name === "isOpen") return own() !== undefined;
      // Must not look like a promise, or `await` would try to resolve it.
      if (name === "then") return undefined;
      return name in members ? Reflect.get(members, name) : Reflect.get(node(), name);
    },
    has: (members, name) => name in members || name === "isOpen" || name in (own() ?? {}),
    ownKeys: (members) => [...new Set([...Reflect.ownKeys(members), ...Reflect.ownKeys(own() ?? {})])],
    getOwnPropertyDescriptor: (members, name) =>
      name in members || name in (own() ?? {})
        ? { configurable: true, enumerable: true, value: Reflect.get(name in members ? members : node(), name) }
        : undefined,
  });
}

interface NodeSettings {
  readonly repo: string;
  readonly store: SharedStoreSettings | undefined;
  readonly data: string | undefined;
  readonly profile: string | undefined;
  readonly lostMetadata: "refuse" | "restore" | "none" | undefined;
  readonly offline: boolean;
  readonly pubsub: boolean | undefined;
  readonly namesOverPubsub: boolean | undefined;
  readonly agent: string | undefined;
  readonly defaults: { readonly pubsub: true; readonly namesOverPubsub: true };
}

function settingsOf(module: OwnModule): NodeSettings {
  return {
    repo: module.get_option_path("node_repo") ?? join(module.data_path(), "repo"),
    store: module.get_option("node_store"),
    data: module.get_option_path("node_data"),
    profile: profileOf(module),
    lostMetadata: module.get_option_enum("node_lost_metadata", ["refuse", "restore", "none"]),
    offline: module.get_option_boolean("node_offline") === true,
    pubsub: module.get_option_boolean("node_pubsub"),
    namesOverPubsub: module.get_option_boolean("node_namesys_pubsub"),
    agent: agentOf(module),
    defaults: { pubsub: true, namesOverPubsub: true },
  };
}

/** @throws ModhostError OPTION_INVALID */
function agentOf(module: OwnModule): string | undefined {
  const agent = module.get_option_string("node_agent");
  if (agent === undefined || isAgentVersion(agent)) return agent;
  return module.get_option_enum("node_agent", ["NAME/VERSION without blanks, such as kubo/0.43.0"]);
}

/** One or more profiles, separated by commas. @throws ModhostError OPTION_INVALID */
function profileOf(module: OwnModule): string | undefined {
  const given = module.get_option_string("node_profile");
  const names = given?.split(",").filter((name) => name !== "") ?? [];
  return names.every(isProfile) ? given : module.get_option_enum("node_profile", Object.keys(profiles));
}

/**
 * Opens the node for sharing. Unless `isPatient` is set, waits for only a part of `load_timeout`,
 * so that the server can continue to load.
 *
 * @throws Error with the repo folder in its message, which the node's own errors may lack
 */
async function openShared(module: OwnModule, settings: NodeSettings, isPatient: boolean): Promise<SharedNode> {
  try {
    const open = () =>
      createNode({
        ...settings,
        apiAddress: hostAddress(module as Module),
        onNotice: (sentence) => module.log.warn("%s", sentence),
      });
    const firstMs = ((module as Module).get_option_period("load_timeout", 30) ?? 30) * 1000 * SHARE_OF_LOADING;
    const soon = { key: JSON.stringify(settings), open, firstMs, laterMs: Math.min(firstMs, MAX_LATER_MS) };
    const node = await (isPatient ? open() : pendingOpens.within(soon));
    if (node === undefined) throw failure("NODE_OPENING");
    const { repo } = node.lowLevel;
    if (repo.isNew) module.log.info("made the repo %s of %s", repo.path, repo.identity.peerId);
    return sharedNode(module, node, settings);
  } catch (error) {
    const locked = error instanceof NodeError && error.code === "REPO_LOCKED";
    const reason = locked ? await lockedBy(settings) : (error as Error).message;
    const failed = new Error(`the repo ${settings.repo} does not open: ${reason}`, { cause: error });
    // If a shared store cannot be reached, or this host still has to read much of its log, the host
    // tries to load the module again later.
    throw Object.assign(failed, { retry_after: retryAfter(error) });
  }
}

/** Tells the operator which process holds the lock and what to do about it. */
async function lockedBy({ repo, data }: NodeSettings): Promise<string> {
  const holders = await Promise.all([repo, ...(data === undefined ? [] : [data])].map(lockHolder));
  const holder = holders.find((found) => found !== undefined);
  const file = join(repo, "api");
  // Opening a pipe would block.
  const isFile = await stat(file).then(
    (found) => found.isFile(),
    () => false,
  );
  const api = isFile ? await readFile(file, "utf8").catch(() => "") : "";
  const who = holder ?? "another program";
  const where = api === "" ? "" : ` (its API: ${api.trim()})`;
  return `it is in use by ${who}${where}: stop that one, or set the option node_repo to another folder`;
}

/** Wraps a node for sharing and forwards its log to the host's. */
function sharedNode(module: OwnModule, node: Node, settings: NodeSettings): SharedNode {
  node.lowLevel.log.listen(({ level, system, message }) =>
    module.log(level === "debug" || level === "info" || level === "warn" ? level : "error", "%s: %s", system, message),
  );
  return new SharedNode(node, JSON.stringify(settings));
}

/** The host's first plain HTTP address as a multiaddr, for `Addresses.API` of a new repo. */
function hostAddress(module: Module): string | undefined {
  const listening = module.listening().find(({ service }) => service === "http");
  const [port] = (module.get_option<readonly unknown[]>("http_ports") ?? [5280]).filter(
    (each) => typeof each === "number",
  );
  const [name] = module.get_option_array("http_interfaces") ?? ["127.0.0.1"];
  const found = listening ?? (port === undefined || name === undefined ? undefined : { address: name, port });
  if (found === undefined) return undefined;
  const { address } = found;
  if (isIPv6(address) && address !== "::") return `/ip6/${address}/tcp/${found.port}`;
  return `/ip4/${["::", "*", "0.0.0.0"].includes(address) ? "127.0.0.1" : address}/tcp/${found.port}`;
}

/** Names that change what they stand for. */

import { wholePath } from "../../mod_node/content/resolver/path.ts";
import { parsePeerId, peerIdEncoder } from "../../mod_node/formats/peer_id.ts";
import type { LowLevelNode as Node } from "../../mod_node/index.ts";
import { DEFAULT_MAX_DEPTH, type ResolvedPath, recursionExceeded } from "../../mod_node/network/ipns/dnslink.ts";
import type { IpnsPubsub } from "../../mod_node/network/ipns/ipns_pubsub.ts";
import type { RecordOptions } from "../../mod_node/network/ipns/resolver.ts";
import { NodeError } from "../../mod_node/util/errors.ts";
import { parseDuration } from "../../mod_node/util/go/duration.ts";
import { printable } from "../../mod_node/util/go/text.ts";
import { type AnyCall, type Commands, defineCommand, defineGroup, type Option, value } from "../rpc/command.ts";
import { fields, type ValueOf } from "../rpc/shape.ts";
import { nameBase, orNull, resolvedPath, strings } from "./shapes.ts";

type Resolved = ValueOf<typeof resolvedPath>;

const recursive = (help: string) => ({ type: "bool", aliases: ["r"], default: true, help }) as const satisfies Option;

/** Steps that are taken. */
const depthOf = ({ recursive }: { readonly recursive: boolean }): number => (recursive ? DEFAULT_MAX_DEPTH : 1);

const asPath = ({ Path }: Resolved): string => `${Path}\n`;

/** A step that leads to a name is enough when no more was asked for. */
function resolved({ path, limited }: ResolvedPath, isRecursive: boolean): Resolved {
  if (limited && isRecursive) throw recursionExceeded();
  return { Path: path };
}

/** How records are looked for, as the options `dht-record-count` and `dht-timeout` say. @throws NodeError */
export function recordOptions({
  options: { "dht-record-count": count, "dht-timeout": limit },
  signal,
  offline,
}: Pick<AnyCall, "signal" | "offline"> & {
  readonly options: { readonly "dht-record-count": number | undefined; readonly "dht-timeout": string | undefined };
}): RecordOptions {
  const timeout = limit === undefined ? undefined : parseDuration(limit);
  if (timeout !== undefined && timeout < 0) throw new NodeError("DHT timeout value must be >= 0");
  return { signal, offline, count, timeout };
}

async function followedOf(node: Node): Promise<IpnsPubsub> {
  const followed = await node.names.pubsub();
  if (followed === undefined) throw new NodeError("IPNS pubsub subsystem is not enabled", { kind: "client" });
  return followed;
}

/** The block at the path is here afterwards. @throws NodeError when there is none */
async function requireBlock(
  path: string,
  { lowLevel: node, signal, offline }: Pick<AnyCall, "lowLevel" | "signal" | "offline">,
) {
  const { cid } = await node.resolve(path, { signal, offline });
  await node.reader({ signal, offline })(cid);
}

function lifetimeOf(text: string): number {
  try {
    return parseDuration(text);
  } catch (error) {
    throw new NodeError(`error parsing lifetime option: ${(error as Error).message}`, { cause: error });
  }
}

export const commands = {
  dns: defineCommand({
    help: "Follows the link in the DNS records of a domain.",
    readOnly: true,
    arguments: [{ name: "domain-name", required: true, stdin: "first", help: "The domain." }],
    options: { recursive: recursive("Go on until the result is no domain.") },
    returns: value(resolvedPath),
    async run({ lowLevel: node, arguments: { "domain-name": domain }, options, signal }) {
      return resolved(await node.names.resolveDnslink(domain, { depth: depthOf(options), signal }), options.recursive);
    },
    text: asPath,
  }),
  name: defineGroup({ help: "Publish and resolve names." }),
  "name/publish": defineCommand({
    help: "Makes a name stand for a path.",
    about: `A node that is connected to nobody, as a new one is, answers \`failed to find any peer in table\`; the name stands for the new
path here all the same. With \`allow-offline=true&offline=true\` it does not try to tell others; \`allow-offline\` alone is for a node
that was started without a network.`,
    arguments: [{ name: "ipfs-path", required: true, stdin: "first", help: "The path." }],
    options: {
      resolve: { type: "bool", default: true, help: "Look first whether there is something at that path." },
      lifetime: {
        type: "string",
        aliases: ["t"],
        default: "24h",
        help: 'Time for which the record is valid, such as "300s", "1.5h" or "2h45m".',
      },
      "allow-offline": { type: "bool", help: "Without network, keep the record here instead of failing." },
      ttl: { type: "string", experimental: true, help: "Time for which others may keep the record." },
      key: { type: "string", aliases: ["k"], default: "self", help: "The key, by name or identifier." },
      quieter: { type: "bool", aliases: ["Q"], help: "Print the name alone." },
      "ipns-base": nameBase,
    },
    returns: value(fields("IpnsEntry", { Name: "string", Value: "string" })),
    async run(call) {
      const { lowLevel: node, arguments: args, options, signal, offline } = call;
      const path = args["ipfs-path"];
      const encode = peerIdEncoder(options["ipns-base"]);
      const lifetime = lifetimeOf(options.lifetime);
      const ttl = options.ttl === undefined ? undefined : Math.max(0, parseDuration(options.ttl));
      if (options.resolve) await requireBlock(path, call);
      if (node.mounts.active) throw new NodeError("cannot manually publish while IPNS is mounted");
      if (!node.online && options["allow-offline"] !== true) {
        throw new NodeError("can't publish while offline: pass `--allow-offline` to override");
      }
      wholePath(path);
      const key = await node.names.key(options.key);
      const Value = await node.names.publish(key, path, { lifetime, ttl, offline, signal });
      return { Name: encode(key.id), Value };
    },
    text: ({ Name, Value }, { options }) =>
      options.quieter ? `${Name}\n` : `Published to ${Name}: ${printable(Value)}\n`,
  }),
  "name/pubsub": defineGroup({ help: "Look after the names that are followed over publish and subscribe." }),
  "name/pubsub/cancel": defineCommand({
    help: "Follows a name no longer.",
    arguments: [{ name: "name", required: true, help: "The name." }],
    returns: value(fields("ipnsPubsubCancel", { Canceled: "bool" })),
    async run({ lowLevel: node, arguments: { name } }) {
      const followed = await followedOf(node);
      return { Canceled: followed.cancel(named(name)) };
    },
    text: ({ Canceled }) => (Canceled ? "canceled\n" : "no subscription\n"),
  }),
  "name/pubsub/state": defineCommand({
    help: "Tells whether names are published over publish and subscribe.",
    returns: value(fields("ipnsPubsubState", { Enabled: "bool" })),
    run: async ({ lowLevel: node }) => ({ Enabled: (await node.names.pubsub()) !== undefined }),
    text: ({ Enabled }) => (Enabled ? "enabled\n" : "disabled\n"),
  }),
  "name/pubsub/subs": defineCommand({
    help: "Lists the names that are followed.",
    options: { "ipns-base": nameBase },
    ...strings,
    async run({ lowLevel: node, options }) {
      const encode = peerIdEncoder(options["ipns-base"]);
      return { Strings: orNull((await followedOf(node)).list().map((id) => `/ipns/${encode(id)}`)) };
    },
  }),
  "name/resolve": defineCommand({
    help: "Tells what a name stands for.",
    readOnly: true,
    arguments: [{ name: "name", help: "The name; by default the node's own." }],
    options: {
      recursive: recursive("Go on until the result is no name."),
      nocache: { type: "bool", aliases: ["n"], help: "Do not use what was resolved before." },
      "dht-record-count": {
        type: "uint",
        aliases: ["dhtrc"],
        help: "Number of records to ask the routing system for.",
      },
      "dht-timeout": {
        type: "string",
        aliases: ["dhtt"],
        help: 'Longest time to gather records, such as "30s"; 0 for no limit.',
      },
      stream: { type: "bool", aliases: ["s"], help: "Give each better record as it is found." },
    },
    returns: value(resolvedPath),
    async run(call) {
      const { lowLevel: node, options } = call;
      const name = call.arguments.name ?? node.repo.identity.peerId.toString();
      const looking = { ...recordOptions(call), depth: depthOf(options), fresh: options.nocache };
      if (options.stream !== true) return resolved(await node.names.find(name, looking), options.recursive);
      return each(node.names.search(name, looking), (found) => resolved(found, options.recursive));
    },
    text: asPath,
  }),
} satisfies Commands;

async function* each<T, R>(values: AsyncIterable<T>, map: (value: T) => R): AsyncGenerator<R> {
  for await (const one of values) yield map(one);
}

function named(text: string) {
  try {
    return parsePeerId(text.replace(/^\/ipns\//, ""));
  } catch (error) {
    throw new NodeError((error as Error).message, { kind: "client", cause: error });
  }
}

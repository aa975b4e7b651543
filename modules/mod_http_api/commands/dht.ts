/** The routing system. */
import type { CID } from "multiformats/cid";
import { walk } from "../../mod_node/content/dag/walk.ts";
import { CidSet } from "../../mod_node/formats/cid/set.ts";
import { parseCid } from "../../mod_node/formats/cid/text.ts";
import { type PeerId, parsePeerId } from "../../mod_node/formats/peer_id.ts";
import type { LowLevelNode as Node } from "../../mod_node/index.ts";
import { publicKeyKey, recordKey } from "../../mod_node/network/ipns_record/keys.ts";
import { eventTypes, type RoutingEvents } from "../../mod_node/network/kad/events.ts";
import type { Routing } from "../../mod_node/network/kad/routing.ts";
import { readUpTo } from "../../mod_node/util/async/read_all.ts";
import { NodeError } from "../../mod_node/util/errors.ts";
import { type AnyCall, type Argument, type Commands, defineCommand, defineGroup, stream } from "../rpc/command.ts";
import {
  printAddresses,
  printId,
  printing,
  printProvider,
  printRecord,
  queryEvent,
  shownEvents,
} from "./dht_events.ts";

const options = { verbose: { type: "bool", aliases: ["v"], help: "Print what happens on the way, too." } } as const;
const returns = stream(queryEvent);

const several = <const N extends string>(name: N, help: string) =>
  [{ name, required: true, variadic: true, help }] as const satisfies readonly Argument[];

/** Bytes of the longest record that is looked at; none that is valid is longer. */
const longestRecord = 64 * 1024;

const recordKeys: Readonly<Record<string, (id: PeerId) => Uint8Array>> = { ipns: recordKey, pk: publicKeyKey };

/** `/ipns/<id>` or `/pk/<id>`, in bytes. */
function keyOf(text: string): Uint8Array {
  const [, kind = "", id = ""] = /^\/([^/]*)\/([^/]*)$/.exec(text) ?? [];
  const make = Object.hasOwn(recordKeys, kind) ? recordKeys[kind] : undefined;
  if (make === undefined) throw new NodeError("invalid key");
  return make(parsePeerId(id));
}

const routingOf = async (node: Node): Promise<Routing> => (await node.network()).routing;

function asked(text: string): PeerId {
  try {
    return parsePeerId(text);
  } catch (cause) {
    throw new NodeError("invalid peer ID", { kind: "client", cause });
  }
}

async function localCids(texts: readonly string[], node: Node): Promise<readonly CID[]> {
  const cids = texts.map(parseCid);
  for (const cid of cids) {
    if (!(await node.blocks.has(cid))) throw new NodeError(`block ${cid} not found locally, cannot provide`);
  }
  return cids;
}

/** The blocks themselves, or all below them, each once. */
async function* blocksOf(
  cids: readonly CID[],
  recursive: boolean,
  { lowLevel: node, signal }: Pick<AnyCall, "lowLevel" | "signal">,
) {
  if (!recursive) return yield* cids;
  const seen = new CidSet();
  const read = node.reader({ signal });
  for (const root of cids) for await (const { cid } of walk(root, { read, seen, signal })) yield cid;
}

async function* provideAll(routing: Routing, cids: AsyncIterable<CID>, signal: AbortSignal): RoutingEvents {
  for await (const cid of cids) yield* routing.provide(cid, signal);
}

export const commands = {
  dht: defineGroup({ help: "Ask the routing system." }),
  "dht/findpeer": defineCommand({
    help: "Finds the addresses of a peer.",
    arguments: several("peerID", "The peer's ID; further ones are not looked at."),
    options,
    returns,
    async *run({ lowLevel: node, arguments: { peerID }, signal }) {
      const routing = await routingOf(node);
      yield* shownEvents(routing.findPeer(parsePeerId(peerID[0] as string), signal));
    },
    text: printing({ [eventTypes.finalPeer]: printAddresses }),
  }),
  "dht/findprovs": defineCommand({
    help: "Finds peers that provide a block.",
    arguments: several("key", "CID of the block; further ones are not looked at."),
    options: {
      ...options,
      "num-providers": { type: "int", aliases: ["n"], default: 20, help: "Number of providers to find." },
    },
    returns,
    async *run({ lowLevel: node, arguments: { key }, options: { "num-providers": count }, signal }) {
      const routing = await routingOf(node);
      if (count < 1) throw new NodeError("number of providers must be greater than 0");
      yield* shownEvents(routing.findProviders(parseCid(key[0] as string), { count, signal }));
    },
    text: printing({ [eventTypes.provider]: printProvider }),
  }),
  "dht/get": defineCommand({
    help: "Gets the best record of a key.",
    arguments: several("key", "The key, `/ipns/<name>` or `/pk/<peer ID>`; further ones are not looked at."),
    options,
    returns,
    async *run({ lowLevel: node, arguments: { key }, signal }) {
      const routing = await routingOf(node);
      yield* shownEvents(routing.get(keyOf(key[0] as string), signal));
    },
    text: printing({ [eventTypes.value]: printRecord }),
  }),
  "dht/provide": defineCommand({
    help: "Announces that blocks can be had here.",
    arguments: [{ name: "key", required: true, variadic: true, stdin: "lines", help: "CIDs of the blocks." }],
    options: {
      ...options,
      recursive: { type: "bool", aliases: ["r"], help: "Announce all that they link to, too." },
    },
    returns,
    async *run(call) {
      const { lowLevel: node, signal } = call;
      const { routing, libp2p } = await node.network();
      if (libp2p.getPeers().length === 0) throw new NodeError("cannot provide, no connected peers");
      const cids = await localCids(call.arguments.key, node);
      const blocks = blocksOf(cids, call.options.recursive === true, call);
      yield* shownEvents(provideAll(routing, blocks, signal));
    },
    text: printing({}),
  }),
  "dht/put": defineCommand({
    help: "Writes the record of a key.",
    arguments: [{ name: "key", required: true, help: "The key, `/ipns/<name>` or `/pk/<peer ID>`." }],
    options,
    file: { name: "value-file", required: true, help: "The record." },
    returns,
    async *run({ lowLevel: node, arguments: { key }, files, signal }) {
      const routing = await routingOf(node);
      const record = keyOf(key);
      const { body } = await files.one();
      yield* shownEvents(routing.put(record, await readUpTo(body, longestRecord), signal));
    },
    text: printing({ [eventTypes.value]: printId }),
  }),
  "dht/query": defineCommand({
    help: "Finds the peers that are nearest to an ID.",
    arguments: several("peerID", "The ID; further ones are not looked at."),
    options,
    returns,
    async *run({ lowLevel: node, arguments: { peerID }, signal }) {
      const routing = node.online ? await routingOf(node) : undefined;
      if (routing?.dht === undefined) throw new NodeError("routing service is not a DHT");
      yield* shownEvents(routing.closestPeers(asked(peerID[0] as string).toMultihash().bytes, signal));
    },
    text: printing({ [eventTypes.finalPeer]: printId }),
  }),
} satisfies Commands;

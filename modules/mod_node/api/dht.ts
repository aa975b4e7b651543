/** The routing system: finding providers, peers and records. */
import type { Multiaddr } from "@multiformats/multiaddr";
import type { CID } from "multiformats/cid";
import { walk } from "../content/dag/walk.ts";
import { CidSet } from "../formats/cid/set.ts";
import { parseCid } from "../formats/cid/text.ts";
import { type PeerId, parsePeerId } from "../formats/peer_id.ts";
import { publicKeyKey, recordKey } from "../network/ipns_record/keys.ts";
import { eventTypes, type PeerAddresses } from "../network/kad/events.ts";
import type { Routing } from "../network/routing/routing.ts";
import type { LowLevelNode } from "../node/low_level_node.ts";
import { readUpTo } from "../util/async/read_all.ts";
import { failure, NodeError } from "../util/errors.ts";
import { type ByteSource, type CallOptions, callSignal, listOf, type PeerName, piecesOf } from "./common.ts";

/**
 * An event of a search. For a response, the RPC API reports neither the message that it responds to
 * nor whether its peers are closer peers or providers. `messageType`, `closer` and `providers` are
 * therefore filled in as the client libraries do it.
 */
export type QueryEvent =
  | { readonly name: "SENDING_QUERY"; readonly type: 0 }
  | {
      readonly name: "PEER_RESPONSE";
      readonly type: 1;
      readonly from: PeerId;
      readonly messageType: 0;
      readonly messageName: "PUT_VALUE";
      readonly closer: readonly DhtPeer[];
      readonly providers: readonly DhtPeer[];
    }
  | { readonly name: "FINAL_PEER"; readonly type: 2; readonly peer: DhtPeer }
  | { readonly name: "QUERY_ERROR"; readonly type: 3; readonly error: Error }
  | { readonly name: "PROVIDER"; readonly type: 4; readonly providers: readonly DhtPeer[] }
  /** A record that was found; for `put`, a record that a peer has accepted, without its bytes. */
  | { readonly name: "VALUE"; readonly type: 5; readonly value: Uint8Array }
  | { readonly name: "DIALING_PEER"; readonly type: 7; readonly peer: PeerId };

/** An event with all fields of the RPC API, whatever its type. */
export interface DhtEvent {
  /** Type of the event, as in `QueryEvent`. */
  readonly type: QueryEvent["type"];
  /** The peer that the event is about. */
  readonly id?: PeerId;
  /** Peers that were found, or that a response names. */
  readonly responses?: readonly Omit<DhtPeer, "protocols">[];
  /** Why a peer or the whole query failed. */
  readonly text?: string;
  /** The record that was found. */
  readonly value?: Uint8Array;
}

/** A peer and its addresses, which do not end in its id. */
export interface DhtPeer {
  readonly id: PeerId;
  readonly multiaddrs: readonly Multiaddr[];
  /** Always empty: the routing system does not report protocols. */
  readonly protocols: readonly string[];
}

export interface DhtFindProvsOptions extends CallOptions {
  /** Number of providers to find; 20 by default. */
  readonly numProviders?: number | undefined;
  /**
   * Whether the block may be given by a path, which is then resolved; by default only a CID is
   * accepted.
   */
  readonly paths?: boolean | undefined;
}

export interface DhtFindPeerOptions extends CallOptions {
  /** Refuse to search for this node itself; by default it is searched for like any other. */
  readonly onlyOthers?: boolean | undefined;
}

export interface DhtPutOptions extends CallOptions {
  /**
   * While the node or the call is offline, store the record of a name on this machine instead of
   * failing.
   */
  readonly allowOffline?: boolean | undefined;
}

export interface DhtProvideOptions extends CallOptions {
  /** Also announce everything below the blocks. */
  readonly recursive?: boolean | undefined;
  /**
   * Refuse the call if announcing is off (`Provide.Enabled`, `Experimental.StrategicProviding`);
   * false by default.
   */
  readonly onlyIfOn?: boolean | undefined;
}

/** `/ipns/<name>` or `/pk/<peer id>`. */
export type DhtKey = string | Uint8Array;

type Cids = CID | string | readonly (CID | string)[];

/**
 * Queries that yield events `E`. They throw a NodeError while the node is offline, or with the
 * reason that an event has reported.
 */
export interface RoutingSearches<E> {
  /** Finds the addresses of a peer: yields FINAL_PEER. */
  findPeer(peer: PeerName, options?: DhtFindPeerOptions): AsyncIterable<E>;
  /** Finds peers that provide a block: yields PROVIDER for each. Finding none is not an error. */
  findProvs(cid: CID | string, options?: DhtFindProvsOptions): AsyncIterable<E>;
  /** Finds the best record of a key: the last event is VALUE. */
  get(key: DhtKey, options?: CallOptions): AsyncIterable<E>;
  /**
   * Stores a record at the peers closest to its key. Yields VALUE for each peer that has accepted
   * it, or for this node if the record is stored locally.
   */
  put(key: DhtKey, value: ByteSource, options?: DhtPutOptions): AsyncIterable<E>;
  /** Announces this node as a provider of blocks. */
  provide(cid: Cids, options?: DhtProvideOptions): AsyncIterable<E>;
  /** Finds the peers closest to an id: yields FINAL_PEER for each, the closest first. */
  query(peer: PeerName, options?: CallOptions): AsyncIterable<E>;
}

/**
 * The same queries under the name that newer client libraries use, without the events that most
 * callers ignore: `put` yields one VALUE at the end, and `provide` yields nothing unless `verbose`
 * is set.
 */
export interface RoutingApi extends Omit<RoutingSearches<QueryEvent>, "query"> {
  provide(
    cid: Cids,
    options?: DhtProvideOptions & { readonly verbose?: boolean | undefined },
  ): AsyncIterable<QueryEvent>;
}

export interface DhtApi extends RoutingSearches<QueryEvent> {
  /** The same queries, with all fields that the RPC API has for each event. */
  readonly events: RoutingSearches<DhtEvent>;
}

/** Maximum size of a record in bytes; no valid record is larger. */
const MAX_RECORD_SIZE = 64 * 1024;

export function routingApi(node: LowLevelNode): RoutingApi {
  const { findPeer, findProvs, get, put, provide } = dhtApi(node);
  return {
    findPeer,
    findProvs,
    get,
    async *put(key, value, options) {
      for await (const _ of put(key, value, options));
      yield queryEvent({ type: eventTypes.value });
    },
    async *provide(cids, { verbose, ...options } = {}) {
      for await (const event of provide(cids, options)) if (verbose === true) yield event;
    },
  };
}

export function dhtApi(node: LowLevelNode): DhtApi {
  const events = eventsApi(node);
  return {
    events,
    findPeer: (peer, options) => named(events.findPeer(peer, options)),
    findProvs: (cid, options) => named(events.findProvs(cid, options)),
    get: (key, options) => named(events.get(key, options)),
    put: (key, value, options) => named(events.put(key, value, options)),
    provide: (cids, options) => named(events.provide(cids, options)),
    query: (peer, options) => named(events.query(peer, options)),
  };
}

function eventsApi(node: LowLevelNode): DhtApi["events"] {
  const opened = async (): Promise<Routing> => (await node.network()).routing;
  return {
    async *findPeer(peer, { onlyOthers, ...options } = {}) {
      const routing = await opened();
      const id = parsePeerId(String(peer));
      if (onlyOthers === true && id.equals(node.repo.identity.peerId)) {
        throw failure("PEER_IS_SELF", { reason: "finding your own node in the DHT is currently not supported" });
      }
      yield* routing.findPeer(id, callSignal(options));
    },
    async *findProvs(cid, { numProviders: count = 20, paths, ...options } = {}) {
      const routing = await opened();
      if (count < 1) throw failure("OPTION_INVALID", { reason: "number of providers must be greater than 0" });
      const signal = callSignal(options);
      const block = paths === true ? (await node.resolve(String(cid), { signal })).cid : parseCid(String(cid));
      yield* routing.findProviders(block, { count, signal });
    },
    async *get(key, options = {}) {
      const routing = await opened();
      yield* routing.get(keyOf(key), callSignal(options));
    },
    async *put(key, value, { allowOffline, ...options } = {}) {
      if (allowOffline === true && (options.offline === true || !node.online)) {
        yield* storeLocally(node, key, value, callSignal(options));
        return;
      }
      const routing = await opened();
      const record = keyOf(key);
      yield* routing.put(record, await readUpTo(piecesOf(value), MAX_RECORD_SIZE), callSignal(options));
    },
    async *provide(given, { recursive, onlyIfOn, ...options } = {}) {
      const signal = callSignal(options);
      const { routing, libp2p } = await node.network();
      if (onlyIfOn === true && routing.providing.isOff) throw failure("PROVIDE_OFF");
      if (libp2p.getPeers().length === 0)
        throw failure("NO_CONNECTED_PEERS", { reason: "cannot provide, no connected peers" });
      const roots = listOf(given).map((cid) => parseCid(String(cid)));
      await requireBlocks(node, roots);
      const cids = recursive === true ? below(node, roots, signal) : roots;
      for await (const cid of cids) yield* routing.provide(cid, signal);
    },
    async *query(peer, options = {}) {
      const routing = node.online ? await opened() : undefined;
      if (routing?.dht === undefined) throw failure("DHT_MISSING");
      yield* routing.closestPeers(idOf(peer).toMultihash().bytes, callSignal(options));
    },
  };
}

const recordKeys: Readonly<Record<string, (id: PeerId) => Uint8Array>> = { ipns: recordKey, pk: publicKeyKey };

async function* storeLocally(node: LowLevelNode, key: DhtKey, value: ByteSource, signal: AbortSignal) {
  const { kind, id } = partsOf(key);
  if (kind !== "ipns")
    throw failure("NOT_SUPPORTED", { reason: "only records of names are stored while the node is offline" });
  const bytes = await readUpTo(piecesOf(value), MAX_RECORD_SIZE);
  await node.names.put(parsePeerId(id), bytes, { signal, allowOffline: true });
  yield { type: eventTypes.value, id: node.repo.identity.peerId };
}

function partsOf(key: DhtKey): { readonly kind: string; readonly id: string } {
  const text = typeof key === "string" ? key : Buffer.from(key).toString();
  const [, kind = "", id = ""] = /^\/([^/]*)\/([^/]*)$/.exec(text) ?? [];
  return { kind, id };
}

/** Converts a key to bytes. */
function keyOf(key: DhtKey): Uint8Array {
  const { kind, id } = partsOf(key);
  const make = Object.hasOwn(recordKeys, kind) ? recordKeys[kind] : undefined;
  if (make === undefined) throw failure("ARGUMENT_INVALID", { reason: "invalid key" });
  return make(parsePeerId(id));
}

function idOf(peer: PeerName): PeerId {
  try {
    return parsePeerId(String(peer));
  } catch (cause) {
    throw new NodeError("INVALID_PEER_ID", "invalid peer ID", { kind: "client", cause });
  }
}

export async function requireBlocks(node: LowLevelNode, cids: readonly CID[]): Promise<void> {
  for (const cid of cids) {
    if (!(await node.blocks.has(cid)))
      throw failure("BLOCK_NOT_LOCAL", { reason: `block ${cid} not found locally, cannot provide` });
  }
}

/** Yields the blocks and everything below them, each once. */
async function* below(node: LowLevelNode, roots: readonly CID[], signal: AbortSignal): AsyncGenerator<CID> {
  const seen = new CidSet();
  const read = node.reader({ signal });
  for (const root of roots) for await (const { cid } of walk(root, { read, seen, signal })) yield cid;
}

async function* named(events: AsyncIterable<DhtEvent>): AsyncGenerator<QueryEvent, void, undefined> {
  for await (const event of events) yield queryEvent(event);
}

const peerOf = ({ id, multiaddrs }: PeerAddresses): DhtPeer => ({ id, multiaddrs, protocols: [] });

function queryEvent({ type, id, responses = [], text = "", value = new Uint8Array() }: DhtEvent): QueryEvent {
  const peers = responses.map(peerOf);
  switch (type) {
    case eventTypes.sendingQuery:
      return { name: "SENDING_QUERY", type };
    case eventTypes.peerResponse: {
      const response = { messageType: 0, messageName: "PUT_VALUE", closer: peers, providers: peers } as const;
      return { name: "PEER_RESPONSE", type, from: id as PeerId, ...response };
    }
    case eventTypes.finalPeer:
      return { name: "FINAL_PEER", type, peer: peers[0] ?? peerOf({ id: id as PeerId, multiaddrs: [] }) };
    case eventTypes.queryError:
      return { name: "QUERY_ERROR", type, error: new Error(text) };
    case eventTypes.provider:
      return { name: "PROVIDER", type, providers: peers };
    case eventTypes.value:
      return { name: "VALUE", type, value };
    case eventTypes.dialingPeer:
      return { name: "DIALING_PEER", type, peer: id as PeerId };
  }
}

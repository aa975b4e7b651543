/** Looks up records through the node. */
import {
  NodeError,
  type NodeModule,
  type PeerRecord,
  type parseCid,
  type parsePeerId,
  routingEventTypes,
} from "modhost/node";
import { Refusal } from "../errors/refusal.ts";

type PeerId = ReturnType<typeof parsePeerId>;
type Routing = Awaited<ReturnType<NodeModule["lowLevel"]["network"]>>["routing"];
type Events = ReturnType<Routing["findPeer"]>;

export type PeerRecords = AsyncGenerator<PeerRecord, void, undefined>;

/** Maximum time of one lookup in milliseconds. */
export const LOOK_UP_MS = 30_000;
/** Number of the protocol `p2p` in addresses. */
const P2P_CODE = 421;

/**
 * The lookups of one request. Without a network they find nothing. When `signal` aborts, they end
 * with what they have found. They only use the DHT, because two nodes that use each other as
 * routers would query each other in circles.
 */
export class LookUps {
  readonly #node: NodeModule;
  readonly #signal: AbortSignal;

  constructor(node: NodeModule, signal: AbortSignal) {
    this.#node = node;
    this.#signal = signal;
  }

  /** Yields each provider of a block once. */
  async *providers(cid: ReturnType<typeof parseCid>): PeerRecords {
    const routing = await this.#routing();
    if (routing === undefined) return;
    const found = routing.findProviders(cid, {
      count: Number.POSITIVE_INFINITY,
      signal: this.#signal,
      delegated: false,
    });
    yield* this.#records(found, routingEventTypes.provider);
  }

  /** Yields the record of a peer, or nothing. */
  async *peer(id: PeerId): PeerRecords {
    const routing = await this.#routing();
    if (routing === undefined) return;
    const found = routing.findPeer(id, this.#signal, { delegated: false });
    yield* this.#records(found, routingEventTypes.finalPeer);
  }

  /**
   * Returns the peers closest to a multihash, the nearest first. @throws {Refusal} 501 if there is
   * no DHT
   */
  async closest(multihash: Uint8Array): Promise<PeerRecords> {
    const routing = await this.#routing();
    if (routing?.dht === undefined) throw new Refusal(501, "This node has no DHT");
    return this.#records(routing.closestPeers(multihash, this.#signal), routingEventTypes.finalPeer);
  }

  async #routing(): Promise<Routing | undefined> {
    const { lowLevel } = this.#node;
    return lowLevel.online ? (await lowLevel.network()).routing : undefined;
  }

  async *#records(events: Events, wanted: number): PeerRecords {
    try {
      for await (const { type, id: about, responses } of events) {
        if (type !== wanted) continue;
        const [{ id, multiaddrs } = { id: about, multiaddrs: [] }] = responses ?? [];
        if (id === undefined) continue;
        yield { Schema: "peer", ID: id.toString(), Addrs: await this.#addresses(id, multiaddrs), Protocols: [] };
      }
    } catch (error) {
      // If no peer could be reached, or none had a record, the result is empty rather than an
      // error.
      if (!this.#signal.aborted && !NodeError.is(error)) throw error;
    }
  }

  /**
   * Returns the current addresses of this node, or for another peer the found ones, or else the
   * stored ones.
   */
  async #addresses(id: PeerId, found: readonly { toString(): string }[]): Promise<string[]> {
    const { libp2p } = await this.#node.lowLevel.network();
    if (libp2p.peerId.equals(id)) return libp2p.getMultiaddrs().map(withoutPeer);
    if (found.length > 0) return found.map(String);
    const peer = await libp2p.peerStore.get(id).catch(() => undefined);
    return peer?.addresses.map(({ multiaddr }) => withoutPeer(multiaddr)) ?? [];
  }
}

const withoutPeer = (address: { decapsulateCode(code: number): object }): string =>
  address.decapsulateCode(P2P_CODE).toString();

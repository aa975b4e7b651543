/**
 * Adapts a DHT for the sweep: finds the peers closest to a key, and sends them provider records.
 */
import type { KadDHTComponents } from "@libp2p/kad-dht";
import type { PeerId } from "../../formats/peer_id.ts";
import type { Provider } from "./add_provider.ts";
import { eventTypes, type RoutingEvents } from "./events.ts";
import { sendProviderRecords } from "./provider_stream.ts";
import type { RecordStore } from "./record_store.ts";
import type { SweepNetwork } from "./sweep/announce.ts";
import { type HasKadId, kadIdOf } from "./sweep/keyspace.ts";

export interface DhtPeer extends HasKadId {
  readonly id: PeerId;
}

export interface AnnouncerDeps {
  readonly name: string;
  readonly protocol: string;
  readonly connectionManager: Pick<KadDHTComponents["connectionManager"], "openStream">;
  readonly records: RecordStore;
  readonly closest: (key: Uint8Array, signal: AbortSignal) => RoutingEvents;
  /** Returns this node with the addresses at which peers of this DHT can reach it. */
  readonly self: () => Provider;
}

/** Timeout of a lookup in milliseconds. */
const LOOKUP_TIMEOUT_MS = 60_000;
/** Default number of milliseconds in which a peer must accept all or some of the records. */
export const SEND_TIMEOUT_MS = 10_000;

export class Announcer implements SweepNetwork<DhtPeer> {
  readonly name: string;
  /** Timeout for sending records to a peer, in milliseconds: see `SEND_TIMEOUT_MS`. */
  sendTimeout = SEND_TIMEOUT_MS;
  readonly #deps: AnnouncerDeps;

  constructor(deps: AnnouncerDeps) {
    this.name = deps.name;
    this.#deps = deps;
  }

  async closestPeers(multihash: Uint8Array, signal: AbortSignal): Promise<readonly DhtPeer[]> {
    const peers: DhtPeer[] = [];
    const either = AbortSignal.any([signal, AbortSignal.timeout(LOOKUP_TIMEOUT_MS)]);
    for await (const { type, id } of this.#deps.closest(multihash, either)) {
      if (type === eventTypes.finalPeer && id !== undefined) peers.push({ id, kadId: kadIdOf(id.toMultihash().bytes) });
    }
    return peers;
  }

  async addProvider({ id }: DhtPeer, multihashes: readonly Uint8Array[], signal: AbortSignal): Promise<number> {
    const { connectionManager, protocol, self } = this.#deps;
    const progress = () => AbortSignal.any([signal, AbortSignal.timeout(this.sendTimeout)]);
    const stream = await connectionManager.openStream(id, protocol, { signal: progress() });
    return sendProviderRecords(stream, self(), multihashes, progress);
  }

  storeLocally(multihashes: readonly Uint8Array[]): void {
    for (const multihash of multihashes) this.#deps.records.addOwnProvider(multihash);
  }
}

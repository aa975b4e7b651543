/** A DHT as the sweep uses it: finds the peers closest to a key, and hands them provider records. */
import type { KadDHTComponents } from "@libp2p/kad-dht";
import type { PeerId } from "../../formats/peer_id.ts";
import type { Provider } from "./add_provider.ts";
import { eventTypes, type RoutingEvents } from "./events.ts";
import { sendProviderRecords } from "./provider_stream.ts";
import type { RecordStore } from "./record_store.ts";
import type { SweepNetwork } from "./sweep/announce.ts";
import { kadIdOf, type Placed } from "./sweep/keyspace.ts";

export interface DhtPeer extends Placed {
  readonly id: PeerId;
}

export interface AnnouncerDeps {
  readonly name: string;
  readonly protocol: string;
  readonly connectionManager: Pick<KadDHTComponents["connectionManager"], "openStream">;
  readonly records: RecordStore;
  readonly closest: (key: Uint8Array, signal: AbortSignal) => RoutingEvents;
  /** This node, with the addresses at which peers of this DHT reach it. */
  readonly self: () => Provider;
}

/** Milliseconds for a lookup. */
const LOOKUP_TIMEOUT_MS = 60_000;
/** Milliseconds in which a peer has to take records, or some of them, unless that is set otherwise. */
export const SEND_TIMEOUT_MS = 10_000;

export class Announcer implements SweepNetwork<DhtPeer> {
  readonly name: string;
  /** See `SEND_TIMEOUT_MS`. */
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

  keep(multihashes: readonly Uint8Array[]): void {
    for (const multihash of multihashes) this.#deps.records.keepOwn(multihash);
  }
}

/**
 * Stores the peers that were added by calls and to which connections are maintained, across
 * restarts and separately from `Peering.Peers`.
 */
import { parsePeerId } from "../../formats/peer_id.ts";
import { prefixedStore } from "../../storage/metadata/prefixed_store.ts";
import { readJsonEntry } from "../../storage/metadata/read_entry.ts";
import type { MetadataStore } from "../../storage/metadata/store.ts";
import { type Multiaddr, parseMultiaddr } from "./multiaddr.ts";
import type { PeerToDial } from "./peer_dialer.ts";

/**
 * Prefix in the metadata of this host. Each entry maps the id of a peer to its addresses, as a JSON
 * list of texts.
 */
const PREFIX = "peering/";

export class AddedPeers {
  readonly #store: MetadataStore;
  readonly #peers: Map<string, PeerToDial>;

  /** @param metadata of this host, whether or not it shares a store */
  static async open(metadata: MetadataStore): Promise<AddedPeers> {
    const store = prefixedStore(metadata, PREFIX);
    const peers = new Map<string, PeerToDial>();
    for await (const [id, value] of store.range()) {
      const addresses = readJsonEntry(PREFIX + id, value, (json) => (json as readonly string[]).map(parseMultiaddr));
      peers.set(id, { id: parsePeerId(id), addresses });
    }
    return new AddedPeers(store, peers);
  }

  private constructor(store: MetadataStore, peers: Map<string, PeerToDial>) {
    this.#store = store;
    this.#peers = peers;
  }

  all(): readonly PeerToDial[] {
    return [...this.#peers.values()];
  }

  /** Adds peers; new addresses replace previous ones. */
  async add(peers: readonly PeerToDial[]): Promise<void> {
    await this.#store.transaction((writer) => {
      for (const { id, addresses } of peers) writer.put(id.toString(), encoded(addresses));
    });
    for (const peer of peers) this.#peers.set(peer.id.toString(), peer);
  }

  async remove(ids: readonly PeerToDial["id"][]): Promise<void> {
    await this.#store.transaction((writer) => {
      for (const id of ids) writer.delete(id.toString());
    });
    for (const id of ids) this.#peers.delete(id.toString());
  }
}

const encoded = (addresses: readonly Multiaddr[]): Uint8Array => Buffer.from(JSON.stringify(addresses.map(String)));

/** The datastore of libp2p's peer store: in memory, and written to disk for the next start. */
import { NotFoundError } from "@libp2p/interface";
import { BaseDatastore } from "datastore-core/base";
import { Key, type KeyQuery, type Pair, type Query } from "interface-datastore";
import type { PeerId } from "../../formats/peer_id.ts";
import type { MetadataStore } from "../../storage/metadata/store.ts";
import { LRU } from "../../util/lru.ts";

/** Prefix of the entries in the metadata store. */
const PREFIX = "peers";
/** Prefix of the keys of libp2p's peer store. */
const PEER_KEYS = "/peers/";
/** Maximum number of peers: connected ones, and those that changed last. */
const MAX_PEERS = 4096;
/**
 * Milliseconds until a change is written. Data that a crash loses is learned again from the peers.
 */
const WRITE_AFTER_MS = 30_000;

/** Returns the key under which libp2p's peer store stores a peer. */
export const peerKey = (id: PeerId): string => `${PEER_KEYS}${id.toCID()}`;

export interface PeerDatastoreOptions {
  /** The key of this node. It is not written, because it is created again at each start. */
  readonly own: string;
  /**
   * Keys of connected peers. They are never evicted, because their protocols are stored nowhere
   * else.
   */
  readonly staying?: ReadonlySet<string>;
}

/**
 * Serves reads from memory, because libp2p reads and writes an entry for every opened stream;
 * changes are written together.
 */
export class PeerDatastore extends BaseDatastore {
  readonly #metadata: MetadataStore;
  readonly #own: string;
  readonly #entries: LRU<string, Uint8Array>;
  readonly #changed = new Set<string>();
  #timer: NodeJS.Timeout | undefined;
  #closed = false;

  private constructor(metadata: MetadataStore, { own, staying = new Set() }: PeerDatastoreOptions) {
    super();
    this.#metadata = metadata;
    this.#own = own;
    this.#entries = new LRU(MAX_PEERS, {
      isExempt: (name) => name === own || staying.has(name),
      onEvict: (name) => this.#note(name),
    });
  }

  static async open(metadata: MetadataStore, options: PeerDatastoreOptions): Promise<PeerDatastore> {
    const book = new PeerDatastore(metadata, options);
    for await (const [key, value] of metadata.range({ prefix: `${PREFIX}${PEER_KEYS}`, limit: MAX_PEERS })) {
      book.#entries.set(key.slice(PREFIX.length), value);
    }
    return book;
  }

  override async put(key: Key, value: Uint8Array): Promise<Key> {
    const name = key.toString();
    this.#entries.set(name, value);
    this.#note(name);
    return key;
  }

  override async get(key: Key): Promise<Uint8Array> {
    const value = this.#entries.peek(key.toString());
    if (value === undefined) throw new NotFoundError();
    return value;
  }

  override async has(key: Key): Promise<boolean> {
    return this.#entries.peek(key.toString()) !== undefined;
  }

  override async delete(key: Key): Promise<void> {
    const name = key.toString();
    if (this.#entries.delete(name)) this.#note(name);
  }

  override async *_all({ prefix = "" }: Query): AsyncGenerator<Pair> {
    for (const [name, value] of [...this.#entries]) if (name.startsWith(prefix)) yield { key: new Key(name), value };
  }

  override async *_allKeys({ prefix = "" }: KeyQuery): AsyncGenerator<Key> {
    for (const [name] of [...this.#entries]) if (name.startsWith(prefix)) yield new Key(name);
  }

  /** Writes all changes; later ones are not written. */
  async close(): Promise<void> {
    await this.#write();
    this.#closed = true;
  }

  #note(name: string): void {
    if (this.#closed || name === this.#own || !name.startsWith(PEER_KEYS)) return;
    this.#changed.add(name);
    this.#timer ??= setTimeout(() => void this.#write().catch(() => undefined), WRITE_AFTER_MS).unref();
  }

  async #write(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#changed.size === 0) return;
    const changed = [...this.#changed];
    this.#changed.clear();
    await this.#metadata.transaction((writer) => {
      for (const name of changed) {
        const value = this.#entries.peek(name);
        if (value === undefined) writer.delete(PREFIX + name);
        else writer.put(PREFIX + name, value);
      }
    });
  }
}

/** What is known of peers, for libp2p's peer store: in memory, and on the disk so that a start finds it again. */
import { NotFoundError } from "@libp2p/interface";
import { BaseDatastore } from "datastore-core/base";
import { Key, type KeyQuery, type Pair, type Query } from "interface-datastore";
import type { PeerId } from "../../formats/peer_id.ts";
import type { MetadataStore } from "../../storage/metadata/store.ts";
import { LRU } from "../../util/lru.ts";

/** Room in the metadata store. */
const room = "peers";
/** Keys of libp2p's peer store begin with it. */
const peerKeys = "/peers/";
/** Peers that are remembered, at most: those that stay, and the ones that were heard of last. */
const mostPeers = 4096;
/** Milliseconds between a change and its writing. What a crash takes with it is told by the peers again. */
const writeAfter = 30_000;

/** Where libp2p's peer store keeps what is known of a peer. */
export const peerKey = (id: PeerId): string => `${peerKeys}${id.toCID()}`;

export interface PeerDatastoreOptions {
  /** Key of what is only of this run: the node itself. */
  readonly own: string;
  /** Keys of peers that stay however many others are heard of: what they speak is known from nowhere else. */
  readonly staying?: ReadonlySet<string>;
}

/**
 * Answers from memory, since libp2p reads and writes an entry for every stream that is opened; changes go to the disk
 * together.
 */
export class PeerDatastore extends BaseDatastore {
  readonly #metadata: MetadataStore;
  readonly #own: string;
  /** The last one changed last. */
  readonly #entries: LRU<string, Uint8Array>;
  readonly #changed = new Set<string>();
  #timer: NodeJS.Timeout | undefined;
  #closed = false;

  private constructor(metadata: MetadataStore, { own, staying = new Set() }: PeerDatastoreOptions) {
    super();
    this.#metadata = metadata;
    this.#own = own;
    this.#entries = new LRU(mostPeers, {
      isExempt: (name) => name === own || staying.has(name),
      onEvict: (name) => this.#note(name),
    });
  }

  static async open(metadata: MetadataStore, options: PeerDatastoreOptions): Promise<PeerDatastore> {
    const book = new PeerDatastore(metadata, options);
    for await (const [key, value] of metadata.range({ prefix: `${room}${peerKeys}`, limit: mostPeers })) {
      book.#entries.set(key.slice(room.length), value);
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

  /** Writes what has changed; nothing is written any more afterwards. */
  async close(): Promise<void> {
    await this.#write();
    this.#closed = true;
  }

  #note(name: string): void {
    if (this.#closed || name === this.#own || !name.startsWith(peerKeys)) return;
    this.#changed.add(name);
    this.#timer ??= setTimeout(() => void this.#write().catch(() => undefined), writeAfter).unref();
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
        if (value === undefined) writer.delete(room + name);
        else writer.put(room + name, value);
      }
    });
  }
}

/** What others have asked this node to keep for them, and what it tells of itself: on the disk, for a while, bounded. */
import { NotFoundError, type PeerStore } from "@libp2p/interface";
import { Record as KadRecord } from "@libp2p/kad-dht";
import { BaseDatastore } from "datastore-core/base";
import { Key, type KeyQuery, type Pair, type Query } from "interface-datastore";
import { base32 } from "multiformats/bases/base32";
import { type PeerId, parsePeerId } from "../../formats/peer_id.ts";
import type { MetadataStore } from "../../storage/metadata/store.ts";
import { WriteBehind } from "../../storage/metadata/write_behind.ts";
import { KeyedMutex } from "../../util/async/keyed_mutex.ts";
import { NodeError } from "../../util/errors.ts";
import { compare, requireNamespace } from "./validators.ts";

/** As the routing tables name their keys: `/provider/<multihash>/<peer>` and `/record/<key>`, in base32. */
type Kind = "provider" | "record";

const hour = 3600 * 1000;
/** Milliseconds that a record lives, and how many of those of others are kept. */
const limits: Readonly<Record<Kind, { readonly life: number; readonly most: number }>> = {
  provider: { life: 24 * hour, most: 65_536 },
  record: { life: 36 * hour, most: 8192 },
};
/** Providers of one block that are told. */
const MAX_PROVIDERS_RETURNED = 256;
const sweepEvery = hour;
/** Milliseconds. What a crash takes is announced again by those who announced it. */
const writeAfter = 5000;
/** Bytes of the time of arrival, in milliseconds since 1970, in front of what is kept. */
const TIMESTAMP_SIZE = 8;

export interface RecordStoreOptions {
  readonly metadata: MetadataStore;
  readonly self: PeerId;
  /** Milliseconds since 1970. */
  readonly now?: () => number;
  /** Of others so many records of each kind, when it is not as many as usual. */
  readonly maxRecords?: number;
}

/** Keys of what others have told, bounded: of who has the most the oldest give way. */
class RecordQuota {
  /** By the peer who told (values of keys tell none: they are of one), in the order in which they came. */
  readonly #ofPeer = new Map<string, Set<string>>();
  readonly #most: number;
  readonly #giveWay: (key: string) => void;
  #size = 0;

  /** @param giveWay has to `delete` what it is given */
  constructor(most: number, giveWay: (key: string) => void) {
    this.#most = most;
    this.#giveWay = giveWay;
  }

  add(key: string): void {
    const peer = peerOf(key);
    const keys = this.#ofPeer.get(peer) ?? new Set();
    if (keys.has(key)) return;
    this.#ofPeer.set(peer, keys.add(key));
    this.#size += 1;
    if (this.#size > this.#most) this.#makeRoom();
  }

  delete(key: string): void {
    const peer = peerOf(key);
    const keys = this.#ofPeer.get(peer);
    if (!keys?.delete(key)) return;
    this.#size -= 1;
    if (keys.size === 0) this.#ofPeer.delete(peer);
  }

  /** For several, since looking for who has the most takes a while. */
  #makeRoom(): void {
    let most = new Set<string>();
    for (const keys of this.#ofPeer.values()) if (keys.size > most.size) most = keys;
    for (const key of [...most.values().take(Math.ceil(most.size / 16))]) this.#giveWay(key);
  }
}

/** The records of both tables: as in the reference they share them. */
export class RecordStore {
  readonly #store: WriteBehind;
  readonly #own: string;
  readonly #now: () => number;
  readonly #others: Readonly<Record<Kind, RecordQuota>>;
  /** By key: a record is compared with what is kept, and then takes its place. */
  readonly #turns = new KeyedMutex();
  /** Keys that were set since the sweep began. */
  #since = new Set<string>();
  #timer: NodeJS.Timeout | undefined;
  #sweeping: Promise<void> | undefined;
  #closed = false;

  constructor({ metadata, self, now = Date.now, maxRecords }: RecordStoreOptions) {
    this.#store = new WriteBehind(metadata, "routing", { delayMs: writeAfter });
    this.#own = `/${self}`;
    this.#now = now;
    const othersOf = (kind: Kind) =>
      new RecordQuota(maxRecords ?? limits[kind].most, (key) => this.#set(key, undefined));
    this.#others = { provider: othersOf("provider"), record: othersOf("record") };
  }

  /** Looks through what is there, now and each hour. */
  start(): void {
    if (this.#timer !== undefined || this.#closed) return;
    this.#timer = setInterval(() => void this.sweep(), sweepEvery).unref();
    void this.sweep();
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearInterval(this.#timer);
    await this.#sweeping;
    await this.#store.close();
  }

  async get(key: string): Promise<Uint8Array | undefined> {
    return this.#live(kindOf(key), await this.#store.get(key));
  }

  /** The value of a routing key that is kept here; it may be valid no more. */
  async value(key: Uint8Array): Promise<Uint8Array | undefined> {
    const record = await this.get(valueKey(key));
    return record && KadRecord.deserialize(record).value;
  }

  /** @throws NodeError when what is kept is better */
  async put(key: string, value: Uint8Array): Promise<void> {
    if (kindOf(key) === "provider") this.#keep(key, value);
    else await this.#turns.runExclusive(key, () => this.#putBetter(key, value));
  }

  async #putBetter(key: string, value: Uint8Array): Promise<void> {
    const before = await this.get(key);
    if (before !== undefined && isBetter(before, value)) {
      throw new NodeError("can't replace a newer value with an older value");
    }
    this.#keep(key, value);
  }

  #keep(key: string, value: Uint8Array): void {
    const stamped = Buffer.allocUnsafe(TIMESTAMP_SIZE + value.length);
    stamped.writeBigUInt64BE(BigInt(this.#now()));
    stamped.set(value, TIMESTAMP_SIZE);
    this.#set(key, stamped);
  }

  async delete(key: string): Promise<void> {
    if ((await this.#store.get(key)) !== undefined) this.#set(key, undefined);
  }

  /** Whatever comes or goes does it here. */
  #set(key: string, stamped: Uint8Array | undefined): void {
    this.#store.set(key, stamped);
    if (this.#sweeping !== undefined) this.#since.add(key);
    if (key.endsWith(this.#own)) return;
    const others = this.#others[kindOf(key)];
    others.delete(key);
    if (stamped !== undefined) others.add(key);
  }

  async *range(prefix: string): AsyncGenerator<readonly [key: string, value: Uint8Array], void, undefined> {
    for await (const [key, stamped] of this.#store.range(prefix)) {
      const value = this.#live(kindOf(key), stamped);
      if (value !== undefined) yield [key, value];
    }
  }

  #live(kind: Kind, stamped: Uint8Array | undefined): Uint8Array | undefined {
    if (stamped === undefined || this.#now() - arrival(stamped) > limits[kind].life) return undefined;
    return stamped.subarray(TIMESTAMP_SIZE);
  }

  /** Takes away what has lived its time, and counts what was kept before the start. Never rejects. */
  sweep(): Promise<void> {
    this.#sweeping ??= this.#sweep()
      .catch(() => undefined)
      .finally(() => {
        this.#sweeping = undefined;
        this.#since.clear();
      });
    return this.#sweeping;
  }

  async #sweep(): Promise<void> {
    for (const kind of ["provider", "record"] as const) {
      for await (const [key, stamped] of this.#store.range(`/${kind}/`)) {
        if (this.#closed) return;
        // What is listed may be old by now.
        if (this.#since.has(key)) continue;
        if (this.#live(kind, stamped) === undefined) this.#set(key, undefined);
        else if (!key.endsWith(this.#own)) this.#others[kind].add(key);
      }
    }
  }
}

const kindOf = (key: string): Kind => (key.startsWith("/record/") ? "record" : "provider");

const peerOf = (key: string): string => (kindOf(key) === "provider" ? key.slice(key.lastIndexOf("/") + 1) : "");

const arrival = ({ buffer, byteOffset }: Uint8Array): number =>
  Number(new DataView(buffer, byteOffset, TIMESTAMP_SIZE).getBigUint64(0));

function isBetter(before: Uint8Array, value: Uint8Array): boolean {
  const [kept, given] = [KadRecord.deserialize(before), KadRecord.deserialize(value)];
  return compare(given.key, kept.value, given.value) > 0;
}

/** Under which the tables keep the value of a routing key. */
export const valueKey = (key: Uint8Array): string => `/record/${base32.baseEncode(key)}`;

/** The records as a table asks for them. */
export class RecordDatastore extends BaseDatastore {
  readonly #records: RecordStore;
  readonly #peers: Pick<PeerStore, "has">;

  constructor(records: RecordStore, peers: Pick<PeerStore, "has">) {
    super();
    this.#records = records;
    this.#peers = peers;
  }

  override async put(key: Key, value: Uint8Array): Promise<Key> {
    const name = key.toString();
    // The table looks its validators up in an object: it finds some under the names that every object has.
    if (kindOf(name) === "record") requireNamespace(KadRecord.deserialize(value).key);
    await this.#records.put(name, value);
    return key;
  }

  override async get(key: Key): Promise<Uint8Array> {
    const value = await this.#records.get(key.toString());
    if (value === undefined) throw new NotFoundError();
    return value;
  }

  override async has(key: Key): Promise<boolean> {
    return (await this.#records.get(key.toString())) !== undefined;
  }

  override async delete(key: Key): Promise<void> {
    await this.#records.delete(key.toString());
  }

  /** Providers of whom nothing is known any more are left out: the table would fail to answer for them. */
  override async *_all({ prefix = "" }: Query): AsyncGenerator<Pair, void, undefined> {
    let told = 0;
    for await (const [key, value] of this.#records.range(`${prefix}/`)) {
      if (!(await this.#peers.has(parsePeerId(key.slice(key.lastIndexOf("/") + 1))))) continue;
      yield { key: new Key(key, false), value };
      told += 1;
      if (told === MAX_PROVIDERS_RETURNED) return;
    }
  }

  override async *_allKeys(query: KeyQuery): AsyncGenerator<Key, void, undefined> {
    for await (const { key } of this._all(query.prefix === undefined ? {} : { prefix: query.prefix })) yield key;
  }
}

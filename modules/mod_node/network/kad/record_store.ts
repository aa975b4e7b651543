/**
 * Stores provider records and values of the DHTs on disk, within limits: those that peers send, and
 * this node's own.
 */
import { NotFoundError, type PeerStore } from "@libp2p/interface";
import { Record as KadRecord } from "@libp2p/kad-dht";
import { BaseDatastore } from "datastore-core/base";
import { Key, type KeyQuery, type Pair, type Query } from "interface-datastore";
import { base32 } from "multiformats/bases/base32";
import { type PeerId, parsePeerId } from "../../formats/peer_id.ts";
import { varintLength, writeVarint } from "../../formats/protobuf/varint.ts";
import type { MetadataStore } from "../../storage/metadata/store.ts";
import { WriteBehind } from "../../storage/metadata/write_behind.ts";
import { KeyedMutex } from "../../util/async/keyed_mutex.ts";
import { failure } from "../../util/errors.ts";
import { compare, requireNamespace } from "./validators.ts";

/**
 * Kinds of records. Their keys are those of the library: `/provider/<multihash>/<peer>` and
 * `/record/<key>`, in base32.
 */
type Kind = "provider" | "record";

const HOUR_MS = 3600 * 1000;
/** Milliseconds for which a record is stored, and the maximum number of records from peers. */
const LIMITS: Readonly<Record<Kind, { readonly ttlMs: number; readonly maxRecords: number }>> = {
  provider: { ttlMs: 24 * HOUR_MS, maxRecords: 65_536 },
  record: { ttlMs: 36 * HOUR_MS, maxRecords: 8192 },
};
/** Maximum number of providers of one block in a response. */
const MAX_PROVIDERS_RETURNED = 256;
const SWEEP_EVERY_MS = HOUR_MS;
/**
 * Milliseconds until a change is written. Records that a crash loses are sent again by their
 * senders.
 */
const WRITE_AFTER_MS = 5000;
/**
 * Number of bytes before each record: the time of its arrival, in milliseconds since 1970,
 * big-endian.
 */
const TIMESTAMP_SIZE = 8;

export interface RecordStoreOptions {
  readonly metadata: MetadataStore;
  readonly self: PeerId;
  /** Returns the current time in milliseconds since 1970. */
  readonly now?: () => number;
  /** Maximum number of records from peers of each kind, instead of the default. */
  readonly maxRecords?: number;
}

/**
 * Limits the records of peers: the oldest records of the peer with the most records are evicted.
 */
class RecordQuota {
  /**
   * Keys by the peer that a provider record names, in order of arrival. Values name no peer, and
   * share one entry.
   */
  readonly #byPeer = new Map<string, Set<string>>();
  readonly #maxRecords: number;
  readonly #evict: (key: string) => void;
  #size = 0;

  /** @param evict removes a record, and calls `delete` */
  constructor(maxRecords: number, evict: (key: string) => void) {
    this.#maxRecords = maxRecords;
    this.#evict = evict;
  }

  add(key: string): void {
    const peer = peerOf(key);
    const keys = this.#byPeer.get(peer) ?? new Set();
    if (keys.has(key)) return;
    this.#byPeer.set(peer, keys.add(key));
    this.#size += 1;
    if (this.#size > this.#maxRecords) this.#makeRoom();
  }

  delete(key: string): void {
    const peer = peerOf(key);
    const keys = this.#byPeer.get(peer);
    if (!keys?.delete(key)) return;
    this.#size -= 1;
    if (keys.size === 0) this.#byPeer.delete(peer);
  }

  /**
   * Evicts several records at once, because finding the peer with the most records visits all
   * peers.
   */
  #makeRoom(): void {
    let most = new Set<string>();
    for (const keys of this.#byPeer.values()) if (keys.size > most.size) most = keys;
    for (const key of [...most.values().take(Math.ceil(most.size / 16))]) this.#evict(key);
  }
}

/** The records of both DHTs, which share them as in go-ipfs. */
export class RecordStore {
  readonly #store: WriteBehind;
  readonly #own: string;
  readonly #now: () => number;
  readonly #quotas: Readonly<Record<Kind, RecordQuota>>;
  /** Locks by key, so that comparing a record with the stored one and replacing it is atomic. */
  readonly #mutex = new KeyedMutex();
  /** Keys that were set since the current sweep began. */
  #setDuringSweep = new Set<string>();
  #timer: NodeJS.Timeout | undefined;
  #sweeping: Promise<void> | undefined;
  #closed = false;

  constructor({ metadata, self, now = Date.now, maxRecords }: RecordStoreOptions) {
    this.#store = new WriteBehind(metadata, "routing", { delayMs: WRITE_AFTER_MS });
    this.#own = `/${self}`;
    this.#now = now;
    const quotaFor = (kind: Kind) =>
      new RecordQuota(maxRecords ?? LIMITS[kind].maxRecords, (key) => this.#set(key, undefined));
    this.#quotas = { provider: quotaFor("provider"), record: quotaFor("record") };
  }

  /** Sweeps now and every hour. */
  start(): void {
    if (this.#timer !== undefined || this.#closed) return;
    this.#timer = setInterval(() => void this.sweep(), SWEEP_EVERY_MS).unref();
    void this.sweep();
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearInterval(this.#timer);
    await this.#sweeping;
    await this.#store.close();
  }

  async get(key: string): Promise<Uint8Array | undefined> {
    return this.#unexpired(kindOf(key), await this.#store.get(key));
  }

  /** Resolves to the stored value of a routing key, which may have expired. */
  async value(key: Uint8Array): Promise<Uint8Array | undefined> {
    const record = await this.get(valueKey(key));
    return record && KadRecord.deserialize(record).value;
  }

  /** @throws NodeError if the stored record is better */
  async put(key: string, value: Uint8Array): Promise<void> {
    if (kindOf(key) === "provider") this.#write(key, value);
    else await this.#mutex.runExclusive(key, () => this.#putBetter(key, value));
  }

  async #putBetter(key: string, value: Uint8Array): Promise<void> {
    const before = await this.get(key);
    if (before !== undefined && isBetter(before, value)) {
      throw failure("RECORD_OUTDATED", { reason: "can't replace a newer value with an older value" });
    }
    this.#write(key, value);
  }

  #write(key: string, value: Uint8Array): void {
    const stamped = Buffer.allocUnsafe(TIMESTAMP_SIZE + value.length);
    stamped.writeBigUInt64BE(BigInt(this.#now()));
    stamped.set(value, TIMESTAMP_SIZE);
    this.#set(key, stamped);
  }

  /** Records that this node provides a block. */
  addOwnProvider(multihash: Uint8Array): void {
    this.#addProvider(multihash, this.#own);
  }

  /** Records that a peer, given by the text of its id, provides a block. */
  addProvider(peer: string, multihash: Uint8Array): void {
    this.#addProvider(multihash, `/${peer}`);
  }

  #addProvider(multihash: Uint8Array, provider: string): void {
    const now = this.#now();
    const time = new Uint8Array(varintLength(now));
    writeVarint(time, 0, now);
    this.#write(`/provider/${base32.baseEncode(multihash)}${provider}`, time);
  }

  async delete(key: string): Promise<void> {
    if ((await this.#store.get(key)) !== undefined) this.#set(key, undefined);
  }

  /** Sets or removes a record. */
  #set(key: string, stamped: Uint8Array | undefined): void {
    this.#store.set(key, stamped);
    if (this.#sweeping !== undefined) this.#setDuringSweep.add(key);
    if (key.endsWith(this.#own)) return;
    const quota = this.#quotas[kindOf(key)];
    quota.delete(key);
    if (stamped !== undefined) quota.add(key);
  }

  async *range(prefix: string): AsyncGenerator<readonly [key: string, value: Uint8Array], void, undefined> {
    for await (const [key, stamped] of this.#store.range(prefix)) {
      const value = this.#unexpired(kindOf(key), stamped);
      if (value !== undefined) yield [key, value];
    }
  }

  #unexpired(kind: Kind, stamped: Uint8Array | undefined): Uint8Array | undefined {
    if (stamped === undefined || this.#now() - arrival(stamped) > LIMITS[kind].ttlMs) return undefined;
    return stamped.subarray(TIMESTAMP_SIZE);
  }

  /** Removes expired records, and counts those from before the start. Never rejects. */
  sweep(): Promise<void> {
    this.#sweeping ??= this.#sweep()
      .catch(() => undefined)
      .finally(() => {
        this.#sweeping = undefined;
        this.#setDuringSweep.clear();
      });
    return this.#sweeping;
  }

  async #sweep(): Promise<void> {
    for (const kind of ["provider", "record"] as const) {
      for await (const [key, stamped] of this.#store.range(`/${kind}/`)) {
        if (this.#closed) return;
        // The record that the range yields may have been replaced meanwhile.
        if (this.#setDuringSweep.has(key)) continue;
        if (this.#unexpired(kind, stamped) === undefined) this.#set(key, undefined);
        else if (!key.endsWith(this.#own)) this.#quotas[kind].add(key);
      }
    }
  }
}

const kindOf = (key: string): Kind => (key.startsWith("/record/") ? "record" : "provider");

const peerOf = (key: string): string => (kindOf(key) === "provider" ? key.slice(key.lastIndexOf("/") + 1) : "");

const arrival = ({ buffer, byteOffset }: Uint8Array): number =>
  Number(new DataView(buffer, byteOffset, TIMESTAMP_SIZE).getBigUint64(0));

function isBetter(before: Uint8Array, value: Uint8Array): boolean {
  const stored = KadRecord.deserialize(before);
  const given = KadRecord.deserialize(value);
  return compare(given.key, stored.value, given.value) > 0;
}

/** Returns the key under which the library stores the value of a routing key. */
export const valueKey = (key: Uint8Array): string => `/record/${base32.baseEncode(key)}`;

/** Presents the records as the datastore of a DHT. */
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
    // The library looks up validators in a plain object, and would find inherited properties such
    // as `constructor`.
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

  /**
   * Omits providers that the peer store has dropped, because the library would fail to respond if
   * they were included.
   */
  override async *_all({ prefix = "" }: Query): AsyncGenerator<Pair, void, undefined> {
    let count = 0;
    for await (const [key, value] of this.#records.range(`${prefix}/`)) {
      if (!(await this.#peers.has(parsePeerId(key.slice(key.lastIndexOf("/") + 1))))) continue;
      yield { key: new Key(key, false), value };
      count += 1;
      if (count === MAX_PROVIDERS_RETURNED) return;
    }
  }

  override async *_allKeys(query: KeyQuery): AsyncGenerator<Key, void, undefined> {
    for await (const { key } of this._all(query.prefix === undefined ? {} : { prefix: query.prefix })) yield key;
  }
}

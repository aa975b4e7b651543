/** Names that stand for paths: published here, resolved here (network section 3). */
import { privateKeyToProtobuf } from "@libp2p/crypto/keys";
import { wholePath } from "../../content/resolver/path.ts";
import { type PeerId, parsePeerId } from "../../formats/peer_id.ts";
import { decodeKey, type Key } from "../../storage/keystore/key.ts";
import { type Keystore, self } from "../../storage/keystore/keystore.ts";
import type { MetadataStore } from "../../storage/metadata/store.ts";
import type { Repo } from "../../storage/repo/repo.ts";
import { failure, NodeError } from "../../util/errors.ts";
import type { NodeLog } from "../../util/log.ts";
import { checkRecord, compareRecords, isValidRecord } from "../ipns_record/check.ts";
import { recordKey } from "../ipns_record/keys.ts";
import type { IpnsRecord } from "../ipns_record/record.ts";
import { nextSequence, signRecord } from "../ipns_record/sign.ts";
import { formatTimestamp, timestampAfter } from "../ipns_record/timestamp.ts";
import { NameCache } from "./cache.ts";
import { createTxtLookup } from "./dns_txt.ts";
import { type DnslinkOptions, type ResolvedPath, recursionExceeded, resolveDnslink } from "./dnslink.ts";
import type { IpnsPubsub } from "./ipns_pubsub.ts";
import { type PublishedRecord, PublishedRecords } from "./published_records.ts";
import type { NameNetwork, RecordTransports } from "./record_transports.ts";
import { Republisher } from "./republisher.ts";
import { type RecordOptions, type ResolveOptions, type ResolverDeps, resolveName } from "./resolver.ts";

export interface NamesDeps {
  readonly repo: Pick<Repo, "config" | "identity">;
  readonly metadata: MetadataStore;
  readonly keys: Keystore;
  readonly log: NodeLog;
  /** A record that the routing system keeps here, by its key; it may be valid no more. */
  readonly localValue: (key: Uint8Array) => Promise<Uint8Array | undefined>;
  /** Resolves when the network is open that is being opened; at once when there is none. */
  readonly opened: () => Promise<unknown>;
}

export interface PublishOptions {
  /** Milliseconds, a day when nobody says. */
  readonly lifetime?: number | undefined;
  /** Milliseconds that others may keep the record for; none when nobody says. */
  readonly ttl?: number | undefined;
  /** Keep the record here and tell nobody. */
  readonly offline?: boolean | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** What there is while the node is online. */
interface Online {
  readonly others: RecordTransports;
  readonly cache: NameCache;
  readonly republisher: Republisher;
}

/** Milliseconds for which a record is valid when nobody says. */
const usualLifetime = 24 * 3600 * 1000;
/** Milliseconds for which others are asked for the last record of a key that may have been used elsewhere. */
const lookBackFor = 30_000;
/** Milliseconds for which what is published here is remembered at most, unless its record says. */
const remember = 60_000;
const usualCacheSize = 128;
const nanoseconds = 1e6;

const never = new AbortController().signal;

export class Names {
  readonly #repo: NamesDeps["repo"];
  readonly #keys: Keystore;
  readonly #log: NodeLog;
  readonly #localValue: NamesDeps["localValue"];
  readonly #opened: NamesDeps["opened"];
  readonly #published: PublishedRecords;
  readonly #resolver: Omit<ResolverDeps, "cache">;
  #own: Key | undefined;
  #online: Online | undefined;

  constructor({ repo, metadata, keys, log, localValue, opened }: NamesDeps) {
    this.#repo = repo;
    this.#keys = keys;
    this.#log = log;
    this.#localValue = localValue;
    this.#opened = opened;
    this.#published = new PublishedRecords(metadata);
    this.#resolver = {
      records: (name, options) => this.#records(name, options),
      lookUp: createTxtLookup(() => repo.config.value("DNS.Resolvers") ?? {}),
      fixed: fixedNames(process.env.IPFS_NS_MAP ?? ""),
    };
  }

  /** Names are published and found there from now on. @throws NodeError of a configuration that says what cannot be */
  async goOnline(network: NameNetwork): Promise<void> {
    // A node that stays offline does not pay for it.
    const { RecordTransports } = await import("./record_transports.ts");
    const { config } = this.#repo;
    const [log, published] = [this.#log, this.#published];
    const cache = new NameCache(config.value("Ipns.ResolveCacheSize") || usualCacheSize);
    const publish: RecordTransports["publish"] = (key, bytes, signal) => others.publish(key, bytes, signal);
    const republisher = new Republisher({ config, log, published, keys: () => this.#all(), publish });
    const own = async (name: PeerId) => (await published.get(name))?.bytes;
    const others = new RecordTransports({ ...network, published: own, log });
    this.#online = { others, cache, republisher };
    republisher.start();
  }

  async goOffline(): Promise<void> {
    const online = this.#online;
    this.#online = undefined;
    online?.others.stop();
    await online?.republisher.stop();
  }

  /** Names that are followed over publish and subscribe; undefined while that is off. */
  async pubsub(): Promise<IpnsPubsub | undefined> {
    return (await this.#onlineUnless())?.others.pubsub;
  }

  /** A key by its name, or by the name that it signs in any form. @throws NodeError with the reference's texts */
  async key(text: string): Promise<Key> {
    if (text === self) return this.#self();
    const named = await this.#keys.get(text);
    if (named !== undefined) return named;
    const id = idIn(text);
    if (id === undefined) throw new NodeError("no key by the given name was found");
    const entry = (await this.#keys.list()).find((each) => each.id.equals(id));
    const found = entry?.name === self ? this.#self() : entry && (await this.#keys.get(entry.name));
    if (found === undefined) throw new NodeError("no key by the given name or PeerID was found");
    return found;
  }

  /**
   * Makes the name of a key stand for a path. The record is kept here first: it stays when telling others fails.
   *
   * @returns the path in its full form
   * @throws NodeError of what is no path, of a record that is no better than one here, and when nobody could be told
   */
  async publish(key: Key, text: string, options: PublishOptions = {}): Promise<string> {
    const { lifetime = usualLifetime, ttl = 0, signal = never } = options;
    const path = wholePath(text);
    const online = await this.#onlineUnless(options);
    const claim = {
      value: Buffer.from(path),
      validity: formatTimestamp(timestampAfter(lifetime)),
      ttl: BigInt(Math.round(ttl * nanoseconds)),
    };
    // Before its turn: an answer may take long.
    const isFirst = online !== undefined && (await this.#published.get(key.id)) === undefined;
    const found = isFirst ? await this.#findLastRecord(key.id, signal) : undefined;
    const sign = async (last: PublishedRecord | undefined) => {
      const before = latest(last?.record, found);
      const made = await signRecord(key, { ...claim, sequence: nextSequence(before, claim.value) });
      await checkRecord(key.id, made);
      if (last !== undefined && (await isValidRecord(key.id, last.bytes)) && compareRecords(last.bytes, made) > 0) {
        const words = online === undefined ? "record with an older one" : "value with an older value";
        throw new NodeError(`can't replace a newer ${words}`);
      }
      return made;
    };
    const bytes = await this.#published.update(key.id, sign, signal);
    const name = key.id.toString();
    const cache = this.#online?.cache;
    cache?.delete(name);
    await online?.others.publish(key, bytes, signal);
    const last = await this.#published.get(key.id);
    // It may have been published again while others were told.
    if (last !== undefined && Buffer.compare(last.bytes, bytes) === 0) {
      cache?.set(name, path, Math.min(lifetime, ttl || remember));
    }
    return path;
  }

  /** What a name stands for, each better path as it is found. @throws NodeError with the reference's texts */
  async *search(name: string, options: ResolveOptions = {}): AsyncGenerator<ResolvedPath, void, undefined> {
    // What calls without a network find is not what others are to find later.
    const cache = (await this.#onlineUnless(options))?.cache;
    yield* resolveName(name.replace(/^\/ipns\//, ""), { ...this.#resolver, cache }, options);
  }

  /** The best of what `search` finds; `limited` when there would be more to follow. @throws NodeError when there is none */
  async find(name: string, options: ResolveOptions = {}): Promise<ResolvedPath> {
    let best: ResolvedPath | undefined;
    for await (best of this.search(name, options));
    if (best === undefined) throw failure("NAME_NOT_FOUND");
    return best;
  }

  /** The path behind a name that is no name itself. @throws NodeError when there is none */
  async resolve(name: string, options: ResolveOptions = {}): Promise<string> {
    const { path, limited } = await this.find(name, options);
    if (limited) throw recursionExceeded();
    return path;
  }

  /** Follows the DNS links of `domain` or `domain/sub/path`, and no records. @throws NodeError as `resolveLink` */
  resolveDnslink(domain: string, options: DnslinkOptions): Promise<ResolvedPath> {
    return resolveDnslink(domain, this.#resolver.lookUp, options);
  }

  async #onlineUnless({ offline }: Pick<RecordOptions, "offline"> = {}): Promise<Online | undefined> {
    if (offline) return undefined;
    await this.#opened();
    return this.#online;
  }

  #self(): Key {
    this.#own ??= decodeKey(privateKeyToProtobuf(this.#repo.identity.privateKey));
    return this.#own;
  }

  async *#all(): AsyncGenerator<Key, void, undefined> {
    for (const { name } of await this.#keys.list()) {
      const key = name === self ? this.#self() : await this.#keys.get(name);
      if (key !== undefined) yield key;
    }
  }

  /** The last record of a key, for all that others know. */
  async #findLastRecord(id: PeerId, signal: AbortSignal): Promise<IpnsRecord | undefined> {
    let best: IpnsRecord | undefined;
    for await (best of this.#records(id, { signal, timeout: lookBackFor }));
    return best;
  }

  /** Valid records, each better than those before. */
  async *#records(id: PeerId, options: RecordOptions): AsyncGenerator<IpnsRecord, void, undefined> {
    let best: Uint8Array | undefined;
    const better = async (bytes: Uint8Array | undefined): Promise<IpnsRecord | undefined> => {
      if (bytes === undefined) return undefined;
      const record = await checkRecord(id, bytes).catch(() => undefined);
      if (record === undefined || (best !== undefined && compareRecords(bytes, best) <= 0)) return undefined;
      best = bytes;
      return record;
    };
    const online = await this.#onlineUnless(options);
    const own = await better((await this.#published.get(id))?.bytes);
    const here = (await better(await this.#localValue(recordKey(id)))) ?? own;
    if (here !== undefined) yield here;
    if (online === undefined) return;
    for await (const bytes of online.others.search(id, options)) {
      const record = await better(bytes);
      if (record !== undefined) yield record;
    }
    // It may have been published here meanwhile.
    const since = await better((await this.#published.get(id))?.bytes);
    if (since !== undefined) yield since;
    if (best === undefined) online.others.requireAny();
  }
}

/** Of two records of a name the one with the higher number; the first when that is the same. */
function latest(one: IpnsRecord | undefined, other: IpnsRecord | undefined): IpnsRecord | undefined {
  return other !== undefined && (one === undefined || other.sequence > one.sequence) ? other : one;
}

function idIn(text: string): PeerId | undefined {
  try {
    return parsePeerId(text);
  } catch {
    return undefined;
  }
}

/** Paths by name, of `name:path,name:path`. */
function fixedNames(text: string): ReadonlyMap<string, string> {
  const entries = text.split(",").flatMap((pair): (readonly [string, string])[] => {
    const [name = ""] = pair.split(":", 1);
    const path = pair.slice(name.length + 1);
    return name === "" || path === "" ? [] : [[idIn(name)?.toString() ?? name, path]];
  });
  return new Map(entries);
}

/** IPNS: publishes names for paths, and resolves them. */
import { privateKeyToProtobuf } from "@libp2p/crypto/keys";
import { fullPath } from "../../content/resolver/path.ts";
import { type PeerId, parsePeerId } from "../../formats/peer_id.ts";
import { decodeKey, type Key } from "../../storage/keystore/key.ts";
import { type Keystore, self } from "../../storage/keystore/keystore.ts";
import type { MetadataStore } from "../../storage/metadata/store.ts";
import { type AutoValues, builtIn, expandedResolvers } from "../../storage/repo/auto_values.ts";
import type { Repo } from "../../storage/repo/repo.ts";
import type { WorkShares } from "../../storage/shared/work_shares.ts";
import { failure, NodeError } from "../../util/errors.ts";
import { parseDuration } from "../../util/go/duration.ts";
import type { NodeLog } from "../../util/log.ts";
import { checkRecord, compareRecords, isValidRecord } from "../ipns_record/check.ts";
import { nameOfPublished, PUBLISHED_PREFIX, recordKey } from "../ipns_record/keys.ts";
import type { IpnsRecord } from "../ipns_record/record.ts";
import { nextSequence, signRecord } from "../ipns_record/sign.ts";
import { formatTimestamp, timestampAfter } from "../ipns_record/timestamp.ts";
import { NameCache } from "./cache.ts";
import { createTxtLookup, type Resolvers } from "./dns_txt.ts";
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
  /** Whether to allow any period for republishing names. */
  readonly debug: boolean;
  /** Resolves to the value that the local DHT store has under a key; it may have expired. */
  readonly localValue: (key: Uint8Array) => Promise<Uint8Array | undefined>;
  /** Resolves when a network that is being opened is open; at once if there is none. */
  readonly opened: () => Promise<unknown>;
  /** If several hosts share the same keys: decides which names this host republishes. */
  readonly shares?: WorkShares | undefined;
  /** Throws for a name that must not be resolved. */
  readonly requireServed?: ((name: string) => void) | undefined;
}

export interface PublishOptions {
  /** Milliseconds for which the record is valid, by default a day. */
  readonly lifetime?: number | undefined;
  /** Milliseconds for which others may cache the record; by default the record has no TTL. */
  readonly ttl?: number | undefined;
  /** Whether to store the record locally only. */
  readonly offline?: boolean | undefined;
  /** Whether to succeed even if no peer can accept the record. */
  readonly allowOffline?: boolean | undefined;
  /**
   * Sequence number of the record, greater than that of the last one. By default it grows by one if
   * the value differs.
   */
  readonly sequence?: bigint | undefined;
  /** Versions of its signatures; both by default. */
  readonly versions?: "both" | "V2" | undefined;
  /**
   * Whether to leave the last record in place, without an error, if it has the same value and is
   * valid for longer.
   */
  readonly keepBetter?: boolean | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** A valid record that a search has found. */
export interface FoundRecord extends IpnsRecord {
  /** The signed record as it is exchanged with peers. */
  readonly bytes: Uint8Array;
}

/** The objects that exist while the node is online. */
interface OnlineParts {
  readonly transports: RecordTransports;
  readonly cache: NameCache;
  readonly republisher: Republisher;
}

/** Default number of milliseconds for which a record is valid. */
const DEFAULT_LIFETIME_MS = 24 * 3600 * 1000;
/**
 * Timeout in milliseconds of the search for the last record of a key that may have been used on
 * another node.
 */
const LAST_RECORD_TIMEOUT_MS = 30_000;
/** Milliseconds for which a locally published name is cached if its record has no TTL. */
const DEFAULT_CACHE_TTL_MS = 60_000;
const DEFAULT_CACHE_SIZE = 128;
const NS_PER_MS = 1e6;

const never = new AbortController().signal;

export class Names {
  readonly #repo: NamesDeps["repo"];
  readonly #keys: Keystore;
  readonly #log: NodeLog;
  readonly #debug: boolean;
  readonly #localValue: NamesDeps["localValue"];
  readonly #opened: NamesDeps["opened"];
  readonly #shares: WorkShares | undefined;
  readonly #published: PublishedRecords;
  readonly #resolver: Omit<ResolverDeps, "cache">;
  #own: Key | undefined;
  #online: OnlineParts | undefined;

  constructor({ repo, metadata, keys, log, debug, localValue, opened, shares, requireServed }: NamesDeps) {
    this.#shares = shares;
    this.#repo = repo;
    this.#keys = keys;
    this.#log = log;
    this.#debug = debug;
    this.#localValue = localValue;
    this.#opened = opened;
    this.#published = new PublishedRecords(metadata);
    this.#resolver = {
      records: (name, options) => this.#records(name, options),
      requireServed,
      lookUp: createTxtLookup(() => resolversIn(repo)),
      fixed: parseNameMap(process.env.IPFS_NS_MAP ?? ""),
    };
  }

  /**
   * Starts publishing and finding names over the network. @throws NodeError for an invalid
   * configuration
   */
  async goOnline(network: NameNetwork): Promise<void> {
    // Imported lazily, because an offline node does not need it.
    const { RecordTransports } = await import("./record_transports.ts");
    const { config } = this.#repo;
    const log = this.#log;
    const published = this.#published;
    const bound = () => {
      const longest = config.value("Ipns.MaxCacheTTL") ?? null;
      return longest === null ? Number.POSITIVE_INFINITY : parseDuration(longest);
    };
    const cache = new NameCache(config.value("Ipns.ResolveCacheSize") || DEFAULT_CACHE_SIZE, bound);
    const publish: RecordTransports["publish"] = (key, bytes, signal) => transports.publish(key, bytes, signal);
    const republisher = new Republisher({
      config,
      log,
      published,
      anyPeriod: this.#debug,
      keys: () => this.#renewed(),
      publish,
    });
    const own = async (name: PeerId) => (await published.get(name))?.bytes;
    const transports = new RecordTransports({ ...network, published: own, log });
    this.#online = { transports, cache, republisher };
    this.#shares?.join();
    republisher.start();
  }

  /**
   * Applies `Ipns` of the current configuration. @throws NodeError for an invalid value; the
   * previous settings then stay in effect
   */
  renew(): void {
    this.#online?.republisher.renew();
    this.#online?.cache.resize(this.#repo.config.value("Ipns.ResolveCacheSize") || DEFAULT_CACHE_SIZE);
  }

  async goOffline(): Promise<void> {
    const online = this.#online;
    this.#online = undefined;
    online?.transports.stop();
    await online?.republisher.stop();
    await this.#shares?.leave();
  }

  /** Resolves to IPNS over pubsub; to undefined while it is off. */
  async pubsub(): Promise<IpnsPubsub | undefined> {
    return (await this.#onlineParts())?.transports.pubsub;
  }

  /** Finds a key by its name or its peer id. @throws NodeError with go-ipfs's texts */
  async key(text: string): Promise<Key> {
    if (text === self) return this.#self();
    const named = await this.#keys.get(text);
    if (named !== undefined) return named;
    const id = idIn(text);
    if (id === undefined) throw failure("KEY_NOT_FOUND", { reason: "no key by the given name was found" });
    const entry = (await this.#keys.list()).find((each) => each.id.equals(id));
    const found = entry?.name === self ? this.#self() : entry && (await this.#keys.get(entry.name));
    if (found === undefined) throw failure("KEY_NOT_FOUND", { reason: "no key by the given name or PeerID was found" });
    return found;
  }

  /**
   * Publishes a path under the name of a key. The record is stored locally first, and stays stored
   * if no peer accepts it.
   *
   * @returns the full path @throws NodeError for an invalid path, for a record older than the
   * stored one, and if no peer could be reached, unless `allowOffline` is set
   */
  async publish(key: Key, text: string, options: PublishOptions = {}): Promise<string> {
    const { lifetime = DEFAULT_LIFETIME_MS, ttl = 0, sequence, versions, signal = never } = options;
    const path = fullPath(text);
    const online = await this.#onlineParts(options);
    const claim = {
      value: Buffer.from(path),
      validity: formatTimestamp(timestampAfter(lifetime)),
      ttl: BigInt(Math.round(ttl * NS_PER_MS)),
    };
    // This search must happen before `update`, whose callback must not wait for peers.
    const isFirst = online !== undefined && (await this.#published.get(key.id)) === undefined;
    const found = isFirst ? await this.#findLastRecord(key.id, signal) : undefined;
    const sign = async (last: PublishedRecord | undefined) => {
      // As in go-ipfs, a refused record counts for the sequence number, so that the next record may
      // expire earlier.
      const refused = await this.#published.refused(key.id);
      const before = latest(latest(last?.record, refused?.record), found);
      if (sequence !== undefined && sequence <= (before?.sequence ?? 0n)) {
        throw failure("RECORD_OUTDATED", {
          reason: "sequence number must be greater than the current record sequence",
        });
      }
      const number = sequence ?? nextSequence(before, claim.value);
      const made = await signRecord(key, { ...claim, sequence: number }, versions);
      await checkRecord(key.id, made).catch(async (error: unknown) => {
        await this.#published.storeRefused(key.id, made);
        throw error;
      });
      if (last !== undefined && (await isValidRecord(key.id, last.bytes)) && compareRecords(last.bytes, made) > 0) {
        if (options.keepBetter === true) return last.bytes;
        const what = online === undefined ? "record with an older one" : "value with an older value";
        throw failure("RECORD_OUTDATED", { reason: `can't replace a newer ${what}` });
      }
      return made;
    };
    const bytes = await this.#published.update(key.id, sign, signal);
    const name = key.id.toString();
    const cache = this.#online?.cache;
    cache?.delete(name);
    await online?.transports.publish(key, bytes, signal).catch((error: unknown) => {
      const isAlone = error instanceof NodeError && error.code === "ROUTING_TABLE_EMPTY";
      if (!isAlone || options.allowOffline !== true) throw error;
    });
    const last = await this.#published.get(key.id);
    // Unless the name was published again meanwhile.
    if (last !== undefined && Buffer.compare(last.bytes, bytes) === 0) {
      cache?.set(name, path, Math.min(lifetime, ttl || DEFAULT_CACHE_TTL_MS));
    }
    return path;
  }

  /**
   * Called when another host of the store may have changed this key of the metadata: drops the name
   * from the cache, so that it is looked up again.
   */
  published(key: string): void {
    if (key.startsWith(PUBLISHED_PREFIX)) this.#online?.cache.delete(nameOfPublished(key).toString());
  }

  /**
   * Yields the paths that a name resolves to, each better than the previous ones. @throws NodeError
   * with go-ipfs's texts
   */
  async *search(name: string, options: ResolveOptions = {}): AsyncGenerator<ResolvedPath, void, undefined> {
    // An offline call neither uses nor fills the cache.
    const cache = (await this.#onlineParts(options))?.cache;
    yield* resolveName(name.replace(/^\/ipns\//, ""), { ...this.#resolver, cache }, options);
  }

  /** Resolves to the best result of `search`. @throws NodeError if there is none */
  async find(name: string, options: ResolveOptions = {}): Promise<ResolvedPath> {
    let best: ResolvedPath | undefined;
    for await (best of this.search(name, options));
    if (best === undefined) throw failure("NAME_NOT_FOUND");
    return best;
  }

  /** Resolves a name to a path that is not a name itself. @throws NodeError if there is none */
  async resolve(name: string, options: ResolveOptions = {}): Promise<string> {
    const { path, limited } = await this.find(name, options);
    if (limited) throw recursionExceeded();
    return path;
  }

  /** Resolves to the best record of a key; to undefined if none is found. */
  async record(id: PeerId, options: RecordOptions = {}): Promise<FoundRecord | undefined> {
    let best: FoundRecord | undefined;
    for await (best of this.#records(id, options));
    return best;
  }

  /**
   * Accepts a record that the owner of a name has signed elsewhere: stores it locally like the
   * records of peers, and sends it to the peers closest to the name. With `allowOffline` and
   * without a DHT it is only stored locally.
   *
   * @throws NodeError for a record that is invalid or older than the stored one; OFFLINE_COMMAND
   * without a DHT, unless it is the stored one
   */
  async put(
    id: PeerId,
    bytes: Uint8Array,
    { signal = never, allowOffline = false }: Pick<PublishOptions, "signal" | "allowOffline"> = {},
  ): Promise<void> {
    const { signatureV2 } = await checkRecord(id, bytes);
    if (signatureV2.length === 0) throw failure("RECORD_INVALID", { reason: "record has no signature of version 2" });
    const known = await this.record(id, { offline: true });
    const order = known === undefined ? 1 : compareRecords(bytes, known.bytes);
    if (order < 0) throw failure("RECORD_OUTDATED", { reason: "can't replace a newer value with an older value" });
    const online = await this.#onlineParts();
    if (online?.transports.hasDht !== true) {
      if (order === 0) return;
      if (allowOffline) {
        await this.#published.update(id, async (last) => better(last?.bytes, bytes), signal);
        return;
      }
      throw new NodeError("OFFLINE_COMMAND", "this node has no DHT to put a record into");
    }
    online.cache.delete(id.toString());
    await online.transports.sendToClosest(id, bytes, signal);
  }

  /**
   * Resolves `domain` or `domain/sub/path` by DNSLink only. @throws NodeError as in `dnslink.ts`
   */
  resolveDnslink(domain: string, options: DnslinkOptions): Promise<ResolvedPath> {
    return resolveDnslink(domain, this.#resolver.lookUp, options);
  }

  async #onlineParts({ offline }: Pick<RecordOptions, "offline"> = {}): Promise<OnlineParts | undefined> {
    if (offline) return undefined;
    await this.#opened();
    return this.#online;
  }

  #self(): Key {
    this.#own ??= decodeKey(privateKeyToProtobuf(this.#repo.identity.privateKey));
    return this.#own;
  }

  /** Yields the keys whose names this host republishes. */
  async *#renewed(): AsyncGenerator<Key, void, undefined> {
    const division = await this.#shares?.division();
    for (const { name, id } of await this.#keys.list()) {
      if (name !== self && division?.isMine(id.toMultihash().bytes) === false) continue;
      const key = name === self ? this.#self() : await this.#keys.get(name);
      if (key !== undefined) yield key;
    }
  }

  /** Resolves to the last record of a key that can be found. */
  async #findLastRecord(id: PeerId, signal: AbortSignal): Promise<IpnsRecord | undefined> {
    let best: IpnsRecord | undefined;
    for await (best of this.#records(id, { signal, timeout: LAST_RECORD_TIMEOUT_MS }));
    return best;
  }

  /** Yields valid records, each better than the previous ones. */
  async *#records(id: PeerId, options: RecordOptions): AsyncGenerator<FoundRecord, void, undefined> {
    let best: Uint8Array | undefined;
    const better = async (bytes: Uint8Array | undefined): Promise<FoundRecord | undefined> => {
      if (bytes === undefined) return undefined;
      const record = await checkRecord(id, bytes).catch(() => undefined);
      if (record === undefined || (best !== undefined && compareRecords(bytes, best) <= 0)) return undefined;
      best = bytes;
      return { ...record, bytes };
    };
    const online = await this.#onlineParts(options);
    const own = await better((await this.#published.get(id))?.bytes);
    const here = (await better(await this.#localValue(recordKey(id)))) ?? own;
    if (here !== undefined) yield here;
    if (online === undefined) return;
    for await (const bytes of online.transports.search(id, options)) {
      const record = await better(bytes);
      if (record !== undefined) yield record;
    }
    // The record may have been published locally meanwhile.
    const since = await better((await this.#published.get(id))?.bytes);
    if (since !== undefined) yield since;
    if (best === undefined) online.transports.requireAny();
  }
}

function resolversIn({ config }: Pick<Repo, "config">): Resolvers {
  const { auto = builtIn } = config as { readonly auto?: AutoValues };
  return expandedResolvers(config.value("DNS.Resolvers") ?? {}, auto["DNS.Resolvers"]) as Resolvers;
}

function latest(one: IpnsRecord | undefined, other: IpnsRecord | undefined): IpnsRecord | undefined {
  return other !== undefined && (one === undefined || other.sequence > one.sequence) ? other : one;
}

/** Returns the better of two records of the same name. */
const better = (last: Uint8Array | undefined, given: Uint8Array): Uint8Array =>
  last !== undefined && compareRecords(last, given) > 0 ? last : given;

function idIn(text: string): PeerId | undefined {
  try {
    return parsePeerId(text);
  } catch {
    return undefined;
  }
}

/** Parses paths by name from `name:path,name:path`. */
function parseNameMap(text: string): ReadonlyMap<string, string> {
  const entries = text.split(",").flatMap((pair): (readonly [string, string])[] => {
    const [name = ""] = pair.split(":", 1);
    const path = pair.slice(name.length + 1);
    return name === "" || path === "" ? [] : [[idIn(name)?.toString() ?? name, path]];
  });
  return new Map(entries);
}

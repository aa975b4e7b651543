/** Names over publish and subscribe: whoever follows a name is told of its records (network section 3.6). */

import type { PeerId } from "../../formats/peer_id.ts";
import { KeyedMutex } from "../../util/async/keyed_mutex.ts";
import { Queue } from "../../util/async/queue.ts";
import { NodeError } from "../../util/errors.ts";
import type { NodeLog } from "../../util/log.ts";
import { checkRecord, compareRecords, isValidRecord } from "../ipns_record/check.ts";
import { nameOfRecord, recordKey, recordTopic } from "../ipns_record/keys.ts";

/** What of publish and subscribe names need. */
export interface PubsubTopics {
  publish(topic: string, data: Uint8Array): Promise<unknown>;
  /** Messages of a topic until the signal; those that are too many may be left out. */
  subscribe(topic: string, signal: AbortSignal): AsyncIterable<{ readonly data: Uint8Array }>;
  /** Peers that are subscribed. */
  peers(topic: string): readonly PeerId[];
}

/** Of a message: it is handed out and spread, or not, or whoever sends it is to blame. */
export type Verdict = "accept" | "ignore" | "reject";

export interface IpnsPubsubDeps {
  readonly messages: PubsubTopics;
  /** Has `judge` look at what others say under a topic, until the function that is returned is called. */
  readonly validate: (topic: string, judge: (data: Uint8Array) => Promise<Verdict>) => () => void;
  /** Asks a peer for the record of a key. */
  readonly fetch: (peer: PeerId, key: Uint8Array, signal: AbortSignal) => Promise<Uint8Array | undefined>;
  /** The record of a name that was published here last; it may be valid no more. */
  readonly published: (name: PeerId) => Promise<Uint8Array | undefined>;
  readonly log: NodeLog;
}

/** Names that are followed at most: then the one that nobody has asked for the longest gives way. */
const MAX_NAMES = 1024;
/** Peers that are asked about a name. */
const MAX_PEERS_ASKED = 16;
/** Milliseconds for which one of them is asked. */
const FETCH_TIMEOUT_MS = 10_000;
/** Milliseconds after which a record is told again, unless somebody else has. */
const REBROADCAST_EVERY_MS = 60_000;
/** Milliseconds after which a peer who comes to follow a name again is asked again. */
const FETCH_AGAIN_AFTER_MS = 60_000;

interface NameSubscription {
  readonly id: PeerId;
  readonly topic: string;
  readonly leave: AbortController;
  /** Those who wait for a record. */
  readonly waiting: Set<Queue<Uint8Array>>;
  /** Peers who came to follow it and were asked; when, in milliseconds since 1970, none while they still are. */
  readonly asked: Map<string, number | undefined>;
  best: Uint8Array | undefined;
  /** When the best one was told last, by whomever; milliseconds since 1970. */
  announcedAt: number;
}

export class IpnsPubsub {
  readonly #deps: IpnsPubsubDeps;
  /** By the topic; the one that was asked for last is the last. */
  readonly #names = new Map<string, NameSubscription>();
  /** Of those who came to follow names, by the peer: whoever follows many at once is asked one after the other. */
  readonly #fetches = new KeyedMutex();
  readonly #timer: NodeJS.Timeout;

  constructor(parts: IpnsPubsubDeps) {
    this.#deps = parts;
    this.#timer = setInterval(() => this.#eachMinute(), REBROADCAST_EVERY_MS).unref();
  }

  list(): readonly PeerId[] {
    return [...this.#names.values()].map(({ id }) => id);
  }

  /** Follows a name no longer; tells whether it was followed. @throws NodeError while somebody waits for it */
  cancel(id: PeerId): boolean {
    const name = this.#names.get(recordTopic(id));
    if (name === undefined) return false;
    if (name.waiting.size > 0) throw new NodeError("key has active subscriptions");
    this.#drop(name);
    return true;
  }

  /** Follows the name and tells the others. @param bytes a valid record of it */
  async publish(id: PeerId, bytes: Uint8Array): Promise<void> {
    const name = this.#subscribe(id);
    await this.#accept(name, bytes);
    await this.#rebroadcast(name, bytes);
  }

  /** Follows the name; valid records of it, each better than those before, until all who follow it were asked. */
  async *search(id: PeerId, signal: AbortSignal): AsyncGenerator<Uint8Array, void, undefined> {
    const name = this.#subscribe(id);
    if (name.best !== undefined && (await isValidRecord(id, name.best))) {
      yield name.best;
      return;
    }
    const found = new Queue<Uint8Array>();
    const stop = () => found.end();
    name.waiting.add(found);
    signal.addEventListener("abort", stop, { once: true });
    try {
      void this.#fetchFromSubscribers(name, signal).finally(stop);
      yield* found;
    } finally {
      signal.removeEventListener("abort", stop);
      name.waiting.delete(found);
    }
  }

  /** What others are told who ask for a key. */
  async lookUp(key: Uint8Array): Promise<Uint8Array | undefined> {
    const id = nameOfRecord(key);
    const best = this.#names.get(recordTopic(id))?.best ?? (await this.#deps.published(id));
    return best !== undefined && (await isValidRecord(id, best)) ? best : undefined;
  }

  /** Asks a peer who has come to follow a name, unless that was done just now; nobody waits for it. */
  peerSubscribed(topic: string, peer: PeerId): void {
    const name = this.#names.get(topic);
    const text = peer.toString();
    if (name === undefined || name.asked.has(text)) return;
    name.asked.set(text, undefined);
    const { signal } = name.leave;
    void this.#fetches
      .runExclusive(text, () => this.#fetchFrom(name, peer, signal), signal)
      // Nobody follows the name any more.
      .catch(() => undefined)
      .then(() => name.asked.set(text, Date.now()));
  }

  stop(): void {
    clearInterval(this.#timer);
    for (const name of this.#names.values()) this.#drop(name);
  }

  #subscribe(id: PeerId): NameSubscription {
    const topic = recordTopic(id);
    const known = this.#names.get(topic);
    if (known !== undefined) {
      this.#names.delete(topic);
      this.#names.set(topic, known);
      return known;
    }
    if (this.#names.size >= MAX_NAMES) this.#makeRoom();
    const name: NameSubscription = {
      id,
      topic,
      leave: new AbortController(),
      waiting: new Set(),
      asked: new Map(),
      best: undefined,
      announcedAt: 0,
    };
    this.#names.set(topic, name);
    void this.#listen(name);
    return name;
  }

  #makeRoom(): void {
    const idle = [...this.#names.values()].find(({ waiting }) => waiting.size === 0);
    if (idle === undefined) throw new NodeError(`${MAX_NAMES} names are waited for already`);
    this.#drop(idle);
  }

  #drop(name: NameSubscription): void {
    name.leave.abort();
    for (const each of name.waiting) each.end();
    this.#names.delete(name.topic);
  }

  /** Never rejects. */
  async #listen(name: NameSubscription): Promise<void> {
    const { signal } = name.leave;
    const unguard = this.#deps.validate(name.topic, (data) => this.#accept(name, data));
    try {
      const own = this.#deps.published(name.id).then((bytes) => bytes && this.#accept(name, bytes));
      for await (const { data } of this.#deps.messages.subscribe(name.topic, signal)) await this.#accept(name, data);
      await own;
    } catch (error) {
      if (signal.aborted) return;
      this.#deps.log.write("pubsub-valuestore", "warn", `${name.id} is not followed: ${(error as Error).message}`);
      this.#drop(name);
    } finally {
      unguard();
    }
  }

  /** Keeps what is better than all before. What is forged, or was better once, is not for others either. */
  async #accept(name: NameSubscription, bytes: Uint8Array): Promise<Verdict> {
    const isSame = () => name.best !== undefined && Buffer.compare(name.best, bytes) === 0;
    if (!isSame()) {
      try {
        await checkRecord(name.id, bytes);
      } catch (error) {
        this.#deps.log.write("pubsub-valuestore", "debug", `a record of ${name.id}: ${(error as Error).message}`);
        return "reject";
      }
      if (!isSame() && name.best !== undefined && compareRecords(bytes, name.best) < 0) return "ignore";
    }
    name.announcedAt = Date.now();
    if (isSame()) return "accept";
    name.best = bytes;
    for (const each of name.waiting) each.push(bytes);
    return "accept";
  }

  async #fetchFromSubscribers(name: NameSubscription, signal: AbortSignal): Promise<void> {
    const peers = this.#deps.messages.peers(name.topic).slice(0, MAX_PEERS_ASKED);
    await Promise.all(peers.map((peer) => this.#fetchFrom(name, peer, signal)));
  }

  /** Never rejects: who has no answer is nobody's trouble. */
  async #fetchFrom(name: NameSubscription, peer: PeerId, signal: AbortSignal): Promise<void> {
    try {
      const within = AbortSignal.any([signal, AbortSignal.timeout(FETCH_TIMEOUT_MS)]);
      const bytes = await this.#deps.fetch(peer, recordKey(name.id), within);
      if (bytes !== undefined) await this.#accept(name, bytes);
    } catch (error) {
      this.#deps.log.write("pubsub-valuestore", "debug", `${peer} was asked: ${(error as Error).message}`);
    }
  }

  async #rebroadcast(name: NameSubscription, bytes: Uint8Array): Promise<void> {
    name.announcedAt = Date.now();
    await this.#deps.messages.publish(name.topic, bytes);
  }

  #eachMinute(): void {
    const now = Date.now();
    const before = now - REBROADCAST_EVERY_MS / 2;
    for (const name of this.#names.values()) {
      for (const [peer, at] of name.asked)
        if (at !== undefined && now - at >= FETCH_AGAIN_AFTER_MS) name.asked.delete(peer);
      if (name.announcedAt < before) void this.#rebroadcastBest(name);
    }
  }

  /** Never rejects. */
  async #rebroadcastBest(name: NameSubscription): Promise<void> {
    const { best } = name;
    if (best === undefined) return;
    try {
      if (await isValidRecord(name.id, best)) await this.#rebroadcast(name, best);
      else if (name.best === best) name.best = undefined;
    } catch (error) {
      this.#deps.log.write("pubsub-valuestore", "debug", `${name.id} is not told: ${(error as Error).message}`);
    }
  }
}

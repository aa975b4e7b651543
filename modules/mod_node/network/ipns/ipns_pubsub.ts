/**
 * IPNS over pubsub: publishes the records of a name under its own topic, as the IPNS PubSub Router
 * specification defines.
 */

import type { PeerId } from "../../formats/peer_id.ts";
import { KeyedMutex } from "../../util/async/keyed_mutex.ts";
import { Queue } from "../../util/async/queue.ts";
import { failure } from "../../util/errors.ts";
import type { NodeLog } from "../../util/log.ts";
import { checkRecord, compareRecords, isValidRecord } from "../ipns_record/check.ts";
import { nameOfRecord, recordKey, recordTopic } from "../ipns_record/keys.ts";

/** The part of pubsub that names use. */
export interface PubsubTopics {
  publish(topic: string, data: Uint8Array): Promise<unknown>;
  /** Yields the messages of a topic until the signal aborts; a slow reader may miss some. */
  subscribe(topic: string, signal: AbortSignal): AsyncIterable<{ readonly data: Uint8Array }>;
  /** Returns the connected subscribers. */
  peers(topic: string): readonly PeerId[];
}

/**
 * Accepted messages are delivered and forwarded, ignored ones are not, and rejected ones count
 * against their sender.
 */
export type Verdict = "accept" | "ignore" | "reject";

export interface IpnsPubsubDeps {
  readonly messages: PubsubTopics;
  /** Validates the messages of a topic with `judge`, until the returned function is called. */
  readonly validate: (topic: string, judge: (data: Uint8Array) => Promise<Verdict>) => () => void;
  /** Fetches the record of a key from a peer. */
  readonly fetch: (peer: PeerId, key: Uint8Array, signal: AbortSignal) => Promise<Uint8Array | undefined>;
  /** Returns the record of a name that was last published locally; it may have expired. */
  readonly published: (name: PeerId) => Promise<Uint8Array | undefined>;
  readonly log: NodeLog;
}

/** Maximum number of subscribed names; above it, the least recently used one is dropped. */
const MAX_NAMES = 1024;
/** Maximum number of subscribers to fetch a record from. */
const MAX_PEERS_QUERIED = 16;
/** Timeout of a fetch in milliseconds. */
const FETCH_TIMEOUT_MS = 10_000;
/** Milliseconds after which a record is published again, unless a peer has done so. */
const REBROADCAST_EVERY_MS = 60_000;
/** Milliseconds after which a record may be fetched again from a peer that subscribes again. */
const FETCH_AGAIN_AFTER_MS = 60_000;

interface NameSubscription {
  readonly id: PeerId;
  readonly topic: string;
  readonly stopping: AbortController;
  /** Searches that wait for a record. */
  readonly searches: Set<Queue<Uint8Array>>;
  /**
   * Times at which records were fetched from new subscribers, in milliseconds since 1970; undefined
   * during the fetch.
   */
  readonly fetchedAt: Map<string, number | undefined>;
  best: Uint8Array | undefined;
  /**
   * Time at which this node or a peer last published the best record, in milliseconds since 1970.
   */
  announcedAt: number;
}

export class IpnsPubsub {
  readonly #deps: IpnsPubsubDeps;
  /** Names by topic, the least recently used first. */
  readonly #names = new Map<string, NameSubscription>();
  /**
   * Serializes fetches by peer: if a peer subscribes to many names at once, their records are
   * fetched one after the other.
   */
  readonly #fetches = new KeyedMutex();
  readonly #timer: NodeJS.Timeout;

  constructor(deps: IpnsPubsubDeps) {
    this.#deps = deps;
    this.#timer = setInterval(() => this.#rebroadcastAll(), REBROADCAST_EVERY_MS).unref();
  }

  list(): readonly PeerId[] {
    return [...this.#names.values()].map(({ id }) => id);
  }

  /**
   * Unsubscribes from a name; returns false if it was not subscribed. @throws NodeError while a
   * search waits for it
   */
  cancel(id: PeerId): boolean {
    const name = this.#names.get(recordTopic(id));
    if (name === undefined) return false;
    if (name.searches.size > 0) throw failure("BUSY", { reason: "key has active subscriptions" });
    this.#drop(name);
    return true;
  }

  /** Subscribes to the name and publishes a record of it. @param bytes a valid record */
  async publish(id: PeerId, bytes: Uint8Array): Promise<void> {
    const name = this.#subscribe(id);
    await this.#accept(name, bytes);
    await this.#rebroadcast(name, bytes);
  }

  /**
   * Subscribes to the name. Yields valid records, each better than the previous ones, until all
   * subscribers have responded.
   */
  async *search(id: PeerId, signal: AbortSignal): AsyncGenerator<Uint8Array, void, undefined> {
    const name = this.#subscribe(id);
    if (name.best !== undefined && (await isValidRecord(id, name.best))) {
      yield name.best;
      return;
    }
    const found = new Queue<Uint8Array>();
    const stop = () => found.end();
    name.searches.add(found);
    signal.addEventListener("abort", stop, { once: true });
    try {
      void this.#fetchFromSubscribers(name, signal).finally(stop);
      yield* found;
    } finally {
      signal.removeEventListener("abort", stop);
      name.searches.delete(found);
    }
  }

  /** Returns the record to send to peers that fetch a key. */
  async lookUp(key: Uint8Array): Promise<Uint8Array | undefined> {
    const id = nameOfRecord(key);
    const best = this.#names.get(recordTopic(id))?.best ?? (await this.#deps.published(id));
    return best !== undefined && (await isValidRecord(id, best)) ? best : undefined;
  }

  /**
   * Fetches the record from a peer that has subscribed, in the background, unless that happened
   * recently.
   */
  peerSubscribed(topic: string, peer: PeerId): void {
    const name = this.#names.get(topic);
    const text = peer.toString();
    if (name === undefined || name.fetchedAt.has(text)) return;
    name.fetchedAt.set(text, undefined);
    const { signal } = name.stopping;
    void this.#fetches
      .runExclusive(text, () => this.#fetchFrom(name, peer, signal), signal)
      // The name was unsubscribed meanwhile.
      .catch(() => undefined)
      .then(() => name.fetchedAt.set(text, Date.now()));
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
      stopping: new AbortController(),
      searches: new Set(),
      fetchedAt: new Map(),
      best: undefined,
      announcedAt: 0,
    };
    this.#names.set(topic, name);
    void this.#listen(name);
    return name;
  }

  #makeRoom(): void {
    const idle = [...this.#names.values()].find(({ searches }) => searches.size === 0);
    if (idle === undefined) throw failure("BUSY", { reason: `${MAX_NAMES} names are being searched for already` });
    this.#drop(idle);
  }

  #drop(name: NameSubscription): void {
    name.stopping.abort();
    for (const each of name.searches) each.end();
    this.#names.delete(name.topic);
  }

  /** Accepts the record that was last published locally. Never rejects. */
  async #acceptOwn(name: NameSubscription): Promise<void> {
    try {
      const bytes = await this.#deps.published(name.id);
      if (bytes !== undefined) await this.#accept(name, bytes);
    } catch (error) {
      const reason = (error as Error).message;
      this.#deps.log.write("pubsub-valuestore", "warn", `cannot read the local record of ${name.id}: ${reason}`);
    }
  }

  /** Receives records of the name until it is unsubscribed. Never rejects. */
  async #listen(name: NameSubscription): Promise<void> {
    const { signal } = name.stopping;
    const unguard = this.#deps.validate(name.topic, (data) => this.#accept(name, data));
    try {
      // Runs in parallel, because messages arrive for as long as the node is online.
      const own = this.#acceptOwn(name);
      for await (const { data } of this.#deps.messages.subscribe(name.topic, signal)) await this.#accept(name, data);
      await own;
    } catch (error) {
      if (signal.aborted) return;
      this.#deps.log.write("pubsub-valuestore", "warn", `cannot subscribe to ${name.id}: ${(error as Error).message}`);
      this.#drop(name);
    } finally {
      unguard();
    }
  }

  /**
   * Stores a record that is better than all previous ones. Invalid records are rejected, older ones
   * ignored.
   */
  async #accept(name: NameSubscription, bytes: Uint8Array): Promise<Verdict> {
    const isSame = () => name.best !== undefined && Buffer.compare(name.best, bytes) === 0;
    if (!isSame()) {
      try {
        await checkRecord(name.id, bytes);
      } catch (error) {
        this.#deps.log.write(
          "pubsub-valuestore",
          "debug",
          `rejected a record of ${name.id}: ${(error as Error).message}`,
        );
        return "reject";
      }
      if (!isSame() && name.best !== undefined && compareRecords(bytes, name.best) < 0) return "ignore";
    }
    name.announcedAt = Date.now();
    if (isSame()) return "accept";
    name.best = bytes;
    for (const each of name.searches) each.push(bytes);
    return "accept";
  }

  async #fetchFromSubscribers(name: NameSubscription, signal: AbortSignal): Promise<void> {
    const peers = this.#deps.messages.peers(name.topic).slice(0, MAX_PEERS_QUERIED);
    await Promise.all(peers.map((peer) => this.#fetchFrom(name, peer, signal)));
  }

  /** Never rejects, because a peer may have no record. */
  async #fetchFrom(name: NameSubscription, peer: PeerId, signal: AbortSignal): Promise<void> {
    try {
      const limit = AbortSignal.any([signal, AbortSignal.timeout(FETCH_TIMEOUT_MS)]);
      const bytes = await this.#deps.fetch(peer, recordKey(name.id), limit);
      if (bytes !== undefined) await this.#accept(name, bytes);
    } catch (error) {
      this.#deps.log.write("pubsub-valuestore", "debug", `${peer} did not respond: ${(error as Error).message}`);
    }
  }

  async #rebroadcast(name: NameSubscription, bytes: Uint8Array): Promise<void> {
    name.announcedAt = Date.now();
    await this.#deps.messages.publish(name.topic, bytes);
  }

  #rebroadcastAll(): void {
    const now = Date.now();
    const before = now - REBROADCAST_EVERY_MS / 2;
    for (const name of this.#names.values()) {
      for (const [peer, at] of name.fetchedAt)
        if (at !== undefined && now - at >= FETCH_AGAIN_AFTER_MS) name.fetchedAt.delete(peer);
      if (name.announcedAt < before) void this.#rebroadcastBest(name);
    }
  }

  /**
   * Publishes the best record again if it is still valid, and drops it otherwise. Never rejects.
   */
  async #rebroadcastBest(name: NameSubscription): Promise<void> {
    const { best } = name;
    if (best === undefined) return;
    try {
      if (await isValidRecord(name.id, best)) await this.#rebroadcast(name, best);
      else if (name.best === best) name.best = undefined;
    } catch (error) {
      this.#deps.log.write("pubsub-valuestore", "debug", `cannot republish ${name.id}: ${(error as Error).message}`);
    }
  }
}

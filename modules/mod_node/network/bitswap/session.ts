/** Wants that belong together: a peer that had one block of a file is asked for the next. */
import type { CID } from "multiformats/cid";
import { type ProviderRecord, speaksBitswap } from "../routing/provider_record.ts";
import type { BlockPeer, OtherSources } from "./block_peer.ts";
import type { Want, WantSession } from "./want.ts";

/** Finds peers that have a block: the routing system. */
export interface Providers {
  /** CIDs that wait to be provided. */
  readonly queued?: number;
  findProviderPeers(cid: CID, signal: AbortSignal): AsyncIterable<ProviderRecord>;
}

/** What all sessions share. */
export interface SessionDeps {
  /** All connected peers that speak bitswap. */
  readonly peers: ReadonlyMap<string, BlockPeer>;
  readonly providers: Providers | undefined;
  readonly sources: OtherSources | undefined;
  /** Connects to a provider, which then is one of `peers`. Never rejects. */
  connect(provider: ProviderRecord, signal: AbortSignal): Promise<void>;
  /** Has a want requested soon, or as soon as a peer can be asked for more. */
  enqueue(want: Want): void;
}

/** Milliseconds without a block until providers are searched for, doubled with each search. */
const MIN_SEARCH_INTERVAL_MS = 1000;
const MAX_SEARCH_INTERVAL_MS = 60_000;
const SEARCH_TIMEOUT_MS = 60_000;
/** Milliseconds after which providers are searched for while blocks come: at first, and after any search. */
const WIDEN_AFTER_MS = 1000;
const WIDEN_AGAIN_MS = 60_000;
/** Providers that one search connects to. */
const MAX_PROVIDERS = 10;
/** After so many searches all peers are asked again: one may have lost the want. */
const SEARCHES_BEFORE_ASKING_AGAIN = 3;
/** Wants that a peer is asked about when it connects. */
const MAX_PROBES_OF_NEW_PEER = 256;

export class Session implements WantSession {
  readonly #deps: SessionDeps;
  /** Peers that had a block of this session. */
  readonly #peers = new Set<BlockPeer>();
  readonly wants = new Set<Want>();
  /** What all other blocks are below, if known: its providers are likely to have them as well. */
  readonly #root: CID | undefined;
  #searching: AbortController | undefined;
  #searchAt = 0;
  #searchInterval = MIN_SEARCH_INTERVAL_MS;
  #widenAt: number | undefined;

  constructor(deps: SessionDeps, root?: CID) {
    this.#deps = deps;
    this.#root = root;
  }

  /**
   * Requests a block unless it is on its way: from a peer that has it, else from one that had others, else asks all.
   */
  request(want: Want): void {
    if (want.isInFlight || want.arrived) return;
    const peer = this.#bestPeer(want, want.haves) ?? this.#bestPeer(want, this.#peers);
    if (peer === "busy") this.#deps.enqueue(want);
    else if (peer !== undefined) this.#send(peer, want, true);
    else this.#probeAll(want);
  }

  /** A peer has connected. */
  addPeer(peer: BlockPeer): void {
    let probed = 0;
    for (const want of this.wants) {
      if (want.isInFlight || want.arrived) continue;
      this.#probe(peer, want);
      probed += 1;
      if (probed === MAX_PROBES_OF_NEW_PEER) return;
    }
  }

  /** A peer has a block of this session: what it was not asked for yet is requested of it. */
  peerHasBlocks(peer: BlockPeer): void {
    if (this.#peers.has(peer)) return;
    this.#peers.add(peer);
    for (const want of this.wants) {
      if (!want.isInFlight && !want.asked.has(peer)) this.#deps.enqueue(want);
    }
  }

  /** A source was found that is likely to have blocks of this session. */
  addSource(source: BlockPeer): void {
    this.#peers.add(source);
    for (const want of this.wants) this.request(want);
  }

  sourceReady(source: BlockPeer): void {
    if (this.#peers.has(source)) this.addSource(source);
  }

  /** A block has arrived: the next search is put off. */
  blockArrived(): void {
    this.#searchInterval = MIN_SEARCH_INTERVAL_MS;
    this.#searchAt = performance.now() + MIN_SEARCH_INTERVAL_MS;
  }

  /** Nothing is wanted any more. */
  stopSearch(): void {
    this.#searching?.abort();
    this.#searching = undefined;
    this.#searchInterval = MIN_SEARCH_INTERVAL_MS;
  }

  /** Searches for providers of a block that does not come; to be called several times a second. */
  tick(): void {
    const now = performance.now();
    const stalled = now < this.#searchAt ? undefined : this.#findStalled(now);
    if (stalled === undefined) {
      this.#widen(now);
      return;
    }
    this.#searchAt = now + this.#searchInterval;
    this.#searchInterval = Math.min(MAX_SEARCH_INTERVAL_MS, this.#searchInterval * 2);
    stalled.searches += 1;
    if (stalled.searches > SEARCHES_BEFORE_ASKING_AGAIN) this.#requestAgain();
    // The root first, then in turn.
    const cid = this.#root !== undefined && stalled.searches % 2 === 1 ? this.#root : stalled.cid;
    void this.#search(cid);
  }

  /** What takes long is likely to come faster from more sources. */
  #widen(now: number): void {
    this.#widenAt ??= now + WIDEN_AFTER_MS;
    if (now < this.#widenAt) return;
    const cid = this.#root ?? this.wants.values().next().value?.cid;
    if (cid !== undefined) void this.#search(cid);
  }

  #findStalled(now: number): Want | undefined {
    const count = this.#deps.peers.size;
    for (const want of this.wants) {
      if (want.isInFlight || want.arrived) continue;
      if (now - want.since >= MIN_SEARCH_INTERVAL_MS || want.failed.size >= count) return want;
    }
    return undefined;
  }

  #requestAgain(): void {
    for (const want of this.wants) {
      if (want.isInFlight) continue;
      want.forgetAnswers();
      for (const peer of want.asked) this.#send(peer, want, false);
    }
  }

  async #search(cid: CID): Promise<void> {
    const { providers, peers } = this.#deps;
    if (providers === undefined || this.#searching !== undefined) return;
    const searching = new AbortController();
    this.#searching = searching;
    this.#widenAt = performance.now() + WIDEN_AGAIN_MS;
    const signal = AbortSignal.any([searching.signal, AbortSignal.timeout(SEARCH_TIMEOUT_MS)]);
    try {
      let found = 0;
      for await (const provider of providers.findProviderPeers(cid, signal)) {
        if (signal.aborted) break;
        void this.#addSourcesAt(provider);
        if (!speaksBitswap(provider)) continue;
        const peer = peers.get(provider.id.toString());
        if (peer !== undefined) this.addPeer(peer);
        else void this.#deps.connect(provider, signal);
        found += 1;
        if (found === MAX_PROVIDERS) break;
      }
    } catch {
      // The next search may succeed.
    } finally {
      if (this.#searching === searching) this.#searching = undefined;
    }
  }

  async #addSourcesAt(provider: ProviderRecord): Promise<void> {
    for (const source of (await this.#deps.sources?.at(provider)) ?? []) this.addSource(source);
  }

  /** The peer that is likely to send the block soonest; "busy" when all that might have enough requests pending. */
  #bestPeer(want: Want, among: ReadonlySet<BlockPeer>): BlockPeer | "busy" | undefined {
    let best: BlockPeer | "busy" | undefined;
    let least = Number.POSITIVE_INFINITY;
    for (const peer of among) {
      if (peer.state !== "ready") {
        if (peer.state === "gone") this.#peers.delete(peer);
        continue;
      }
      if (want.failed.has(peer)) continue;
      if (!peer.pending.hasRoom) {
        best ??= "busy";
        continue;
      }
      const { expectedMs } = peer.pending;
      if (expectedMs >= least) continue;
      best = peer;
      least = expectedMs;
    }
    return best;
  }

  #send(peer: BlockPeer, want: Want, block: boolean): void {
    if (peer.pending.add(want.key, want, block)) want.requested(peer, block);
  }

  #probeAll(want: Want): void {
    const { peers } = this.#deps;
    for (const peer of peers.values()) this.#probe(peer, want);
    if (want.asked.size === 0 && peers.size > 0) this.#deps.enqueue(want);
  }

  /** Asks a peer whether it has the block, unless it was asked before. */
  #probe(peer: BlockPeer, want: Want): void {
    if (!want.asked.has(peer)) this.#send(peer, want, false);
  }
}

/**
 * A session groups wants that belong together: a peer that had one block of a file is asked for the
 * next.
 */
import type { CID } from "multiformats/cid";
import { type ProviderRecord, speaksBitswap } from "../routing/provider_record.ts";
import type { BlockPeer, OtherSources } from "./block_peer.ts";
import type { Want, WantSession } from "./want.ts";

/** The routing system, which finds peers that have a block. */
export interface Providers {
  /** Number of CIDs that wait to be provided. */
  readonly queued?: number;
  findProviderPeers(cid: CID, signal: AbortSignal): AsyncIterable<ProviderRecord>;
}

/** The environment that all sessions share. */
export interface SessionDeps {
  /** All connected peers that speak bitswap. */
  readonly peers: ReadonlyMap<string, BlockPeer>;
  readonly providers: Providers | undefined;
  readonly sources: OtherSources | undefined;
  /** Connects to a provider, which then appears in `peers`. Never rejects. */
  connect(provider: ProviderRecord, signal: AbortSignal): Promise<void>;
  /** Requests a want soon, or as soon as a peer has room for another request. */
  enqueue(want: Want): void;
}

/**
 * Milliseconds without a block after which providers are searched for; doubled with each search.
 */
const MIN_SEARCH_INTERVAL_MS = 1000;
const MAX_SEARCH_INTERVAL_MS = 60_000;
const SEARCH_TIMEOUT_MS = 60_000;
/**
 * Milliseconds after which providers are searched for even though blocks arrive: at first, and
 * after any search.
 */
const WIDEN_AFTER_MS = 1000;
const WIDEN_AGAIN_MS = 60_000;
/** Maximum number of providers that one search connects to. */
const MAX_PROVIDERS = 10;
/** Number of searches after which all peers are asked again, because one may have lost the want. */
const SEARCHES_BEFORE_NEW_PROBES = 3;
/** Maximum number of wants that a newly connected peer is asked about. */
const MAX_PROBES_OF_NEW_PEER = 256;

export class Session implements WantSession {
  readonly #deps: SessionDeps;
  /** Peers that had a block of this session. */
  readonly #peers = new Set<BlockPeer>();
  readonly wants = new Set<Want>();
  /**
   * The root that all other blocks are below, if it is known. Its providers are likely to have them
   * as well.
   */
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
   * Requests a block unless it is in flight: from a peer that has it, else from one that had other
   * blocks. Without such a peer, asks all peers who has it.
   */
  requestBlock(want: Want): void {
    if (want.isInFlight || want.arrived) return;
    const peer = this.#bestPeer(want, want.haves) ?? this.#bestPeer(want, this.#peers);
    if (peer === "busy") this.#deps.enqueue(want);
    else if (peer !== undefined) this.#send(peer, want, true);
    else this.#probeAll(want);
  }

  /** Asks a newly connected peer about the wants. */
  addPeer(peer: BlockPeer): void {
    let probed = 0;
    for (const want of this.wants) {
      if (want.isInFlight || want.arrived) continue;
      this.#probe(peer, want);
      probed += 1;
      if (probed === MAX_PROBES_OF_NEW_PEER) return;
    }
  }

  /**
   * Records that a peer has a block of this session, and queues the wants that it was not asked for
   * yet.
   */
  peerHasBlocks(peer: BlockPeer): void {
    if (this.#peers.has(peer)) return;
    this.#peers.add(peer);
    for (const want of this.wants) {
      if (!want.isInFlight && !want.requestedPeers.has(peer)) this.#deps.enqueue(want);
    }
  }

  /** Adds a source that is likely to have blocks of this session. */
  addSource(source: BlockPeer): void {
    this.#peers.add(source);
    for (const want of this.wants) this.requestBlock(want);
  }

  sourceReady(source: BlockPeer): void {
    if (this.#peers.has(source)) this.addSource(source);
  }

  /** Postpones the next search because a block has arrived. */
  blockArrived(): void {
    this.#searchInterval = MIN_SEARCH_INTERVAL_MS;
    this.#searchAt = performance.now() + MIN_SEARCH_INTERVAL_MS;
  }

  /** Stops searching because nothing is wanted. */
  stopSearch(): void {
    this.#searching?.abort();
    this.#searching = undefined;
    this.#searchInterval = MIN_SEARCH_INTERVAL_MS;
  }

  /**
   * Searches for providers of a block that does not arrive; must be called several times a second.
   */
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
    if (stalled.searches > SEARCHES_BEFORE_NEW_PROBES) this.#requestAgain();
    // Alternates between the root, which comes first, and the block itself.
    const cid = this.#root !== undefined && stalled.searches % 2 === 1 ? this.#root : stalled.cid;
    void this.#search(cid);
  }

  /**
   * Searches for further sources of content that takes long, because they are likely to speed it
   * up.
   */
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
      want.forgetResponses();
      for (const peer of want.requestedPeers) this.#send(peer, want, false);
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

  /**
   * Returns the peer that is likely to send the block soonest; "busy" if all candidates have enough
   * pending requests.
   */
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
    if (want.requestedPeers.size === 0 && peers.size > 0) this.#deps.enqueue(want);
  }

  /** Asks a peer whether it has the block, unless it was asked before. */
  #probe(peer: BlockPeer, want: Want): void {
    if (!want.requestedPeers.has(peer)) this.#send(peer, want, false);
  }
}

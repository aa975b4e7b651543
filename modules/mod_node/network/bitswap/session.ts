/** Wants that belong together: who had one block of a file is asked for the next. */
import type { PeerId } from "@libp2p/interface";
import type { Multiaddr } from "@multiformats/multiaddr";
import type { CID } from "multiformats/cid";
import type { BitswapPeer } from "./bitswap_peer.ts";
import type { Want } from "./want.ts";

export interface Provider {
  readonly id: PeerId;
  readonly multiaddrs: readonly Multiaddr[];
}

/** Where peers are found that have a block: the routing system. */
export interface Providers {
  /** CIDs that wait to be announced. */
  readonly queued?: number;
  findProviderPeers(cid: CID, signal: AbortSignal): AsyncIterable<Provider>;
}

/** What sessions have in common. */
export interface SessionDeps {
  /** All connected peers that exchange blocks. */
  readonly peers: ReadonlyMap<string, BitswapPeer>;
  readonly providers: Providers | undefined;
  /** Connects; who exchanges blocks becomes a partner. Never rejects. */
  connect(provider: Provider, signal: AbortSignal): Promise<void>;
  /** Is to be driven soon, or as soon as a peer can be asked for more. */
  enqueue(want: Want): void;
}

/** Milliseconds without a block coming before providers are searched for; then each time twice as long. */
const MIN_SEARCH_INTERVAL_MS = 1000;
const MAX_SEARCH_INTERVAL_MS = 60_000;
/** A search takes no longer than that. */
const SEARCH_TIMEOUT_MS = 60_000;
const MAX_PROVIDERS = 10;
/** From so many searches on everybody is asked anew: a peer may have forgotten. */
const SEARCHES_BEFORE_ASKING_AGAIN = 3;
/** Asked of a peer that has just come. */
const MAX_PROBES_OF_NEW_PEER = 256;

export class Session {
  readonly #deps: SessionDeps;
  readonly #peers = new Set<BitswapPeer>();
  readonly wants = new Set<Want>();
  /** What all the others are below of, if anything: its providers have them, too, most likely. */
  readonly #root: CID | undefined;
  #searching: AbortController | undefined;
  #searchAt = 0;
  #searchInterval = MIN_SEARCH_INTERVAL_MS;

  constructor(company: SessionDeps, root?: CID) {
    this.#deps = company;
    this.#root = root;
  }

  /** Asks for a block, if it is not coming. */
  request(want: Want): void {
    if (want.inFlight > 0 || want.arrived) return;
    const partner = this.#bestPeer(want, want.haves) ?? this.#bestPeer(want, this.#peers);
    if (partner === "busy") this.#deps.enqueue(want);
    else if (partner !== undefined) this.#send(partner, want, true);
    else this.#probeAll(want);
  }

  /** A peer has come. */
  addPeer(partner: BitswapPeer): void {
    let told = 0;
    for (const want of this.wants) {
      if (want.inFlight > 0 || want.arrived) continue;
      this.#probe(partner, want);
      told += 1;
      if (told === MAX_PROBES_OF_NEW_PEER) return;
    }
  }

  /** A peer has something of this: it is asked for what it was not asked for yet. */
  peerHasBlocks(partner: BitswapPeer): void {
    if (this.#peers.has(partner)) return;
    this.#peers.add(partner);
    for (const want of this.wants) {
      if (want.inFlight === 0 && !want.asked.has(partner)) this.#deps.enqueue(want);
    }
  }

  /** A block came. */
  blockArrived(): void {
    this.#searchInterval = MIN_SEARCH_INTERVAL_MS;
    this.#searchAt = performance.now() + MIN_SEARCH_INTERVAL_MS;
  }

  /** Nothing is wanted any more: the search ends. */
  stopSearch(): void {
    this.#searching?.abort();
    this.#searching = undefined;
    this.#searchInterval = MIN_SEARCH_INTERVAL_MS;
  }

  /** Searches for providers of what does not come; called again and again. */
  tick(): void {
    const now = performance.now();
    if (now < this.#searchAt) return;
    const starving = this.#findStalled(now);
    if (starving === undefined) return;
    this.#searchAt = now + this.#searchInterval;
    this.#searchInterval = Math.min(MAX_SEARCH_INTERVAL_MS, this.#searchInterval * 2);
    starving.searches += 1;
    if (starving.searches > SEARCHES_BEFORE_ASKING_AGAIN) this.#requestAgain();
    // The root first, then by turns.
    const cid = this.#root !== undefined && starving.searches % 2 === 1 ? this.#root : starving.cid;
    void this.#search(cid);
  }

  #findStalled(now: number): Want | undefined {
    const partners = this.#deps.peers.size;
    for (const want of this.wants) {
      if (want.inFlight > 0 || want.arrived) continue;
      if (now - want.since >= MIN_SEARCH_INTERVAL_MS || want.failed.size >= partners) return want;
    }
    return undefined;
  }

  #requestAgain(): void {
    for (const want of this.wants) {
      if (want.inFlight > 0) continue;
      want.failed.clear();
      want.haves.clear();
      for (const partner of want.asked) this.#send(partner, want, false);
    }
  }

  async #search(cid: CID): Promise<void> {
    const { providers, peers } = this.#deps;
    if (providers === undefined || this.#searching !== undefined) return;
    const searching = new AbortController();
    this.#searching = searching;
    const signal = AbortSignal.any([searching.signal, AbortSignal.timeout(SEARCH_TIMEOUT_MS)]);
    try {
      let found = 0;
      for await (const provider of providers.findProviderPeers(cid, signal)) {
        if (signal.aborted) break;
        const partner = peers.get(provider.id.toString());
        if (partner !== undefined) this.addPeer(partner);
        else void this.#deps.connect(provider, signal);
        found += 1;
        if (found === MAX_PROVIDERS) break;
      }
    } catch {
      // The next search may go better.
    } finally {
      if (this.#searching === searching) this.#searching = undefined;
    }
  }

  /** Who is likely to send it soonest; `busy` when those who might are asked for all they may be asked. */
  #bestPeer(want: Want, among: Set<BitswapPeer>): BitswapPeer | "busy" | undefined {
    let best: BitswapPeer | "busy" | undefined;
    let least = Number.POSITIVE_INFINITY;
    for (const partner of among) {
      if (this.#deps.peers.get(partner.name) !== partner) among.delete(partner);
      if (want.failed.has(partner) || !among.has(partner)) continue;
      if (!partner.pending.hasRoom) {
        best ??= "busy";
        continue;
      }
      const { expectedMs } = partner.pending;
      if (expectedMs >= least) continue;
      best = partner;
      least = expectedMs;
    }
    return best;
  }

  #send(partner: BitswapPeer, want: Want, block: boolean): void {
    if (!partner.pending.add(want.key, want, block)) return;
    want.asked.add(partner);
    if (block) want.inFlight += 1;
  }

  #probeAll(want: Want): void {
    const { peers } = this.#deps;
    for (const partner of peers.values()) this.#probe(partner, want);
    if (want.asked.size === 0 && peers.size > 0) this.#deps.enqueue(want);
  }

  /** Asks a peer whether it has the block, if it does not know yet that we want it. */
  #probe(partner: BitswapPeer, want: Want): void {
    if (!want.asked.has(partner)) this.#send(partner, want, false);
  }
}

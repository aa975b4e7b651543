/** Wants that belong together: who had one block of a file is asked for the next. */
import type { PeerId } from "@libp2p/interface";
import type { Multiaddr } from "@multiformats/multiaddr";
import type { CID } from "multiformats/cid";
import type { Partner } from "./bitswap_peer.ts";
import type { Want } from "./want.ts";

export interface Provider {
  readonly id: PeerId;
  readonly multiaddrs: readonly Multiaddr[];
}

/** Where peers are found that have a block: the routing system. */
export interface Providers {
  /** CIDs that wait to be announced. */
  readonly queued?: number;
  find(cid: CID, signal: AbortSignal): AsyncIterable<Provider>;
}

/** What sessions have in common. */
export interface Company {
  /** All connected peers that exchange blocks. */
  readonly partners: ReadonlyMap<string, Partner>;
  readonly providers: Providers | undefined;
  /** Connects; who exchanges blocks becomes a partner. Never rejects. */
  reach(provider: Provider, signal: AbortSignal): Promise<void>;
  /** Is to be driven soon, or as soon as a peer can be asked for more. */
  queue(want: Want): void;
}

/** Milliseconds without a block coming before providers are searched for; then each time twice as long. */
const searchAfter = 1000;
const longestPause = 60_000;
/** A search takes no longer than that. */
const searchMs = 60_000;
const mostProviders = 10;
/** From so many searches on everybody is asked anew: a peer may have forgotten. */
const askAnewAfter = 3;
/** Asked of a peer that has just come. */
const mostTold = 256;

export class Session {
  readonly #company: Company;
  readonly #partners = new Set<Partner>();
  readonly wants = new Set<Want>();
  /** What all the others are below of, if anything: its providers have them, too, most likely. */
  readonly #root: CID | undefined;
  #searching: AbortController | undefined;
  #searchAt = 0;
  #pause = searchAfter;

  constructor(company: Company, root?: CID) {
    this.#company = company;
    this.#root = root;
  }

  /** Asks for a block, if it is not coming. */
  drive(want: Want): void {
    if (want.coming > 0 || want.arrived) return;
    const partner = this.#best(want, want.owners) ?? this.#best(want, this.#partners);
    if (partner === "busy") this.#company.queue(want);
    else if (partner !== undefined) this.#ask(partner, want, true);
    else this.#soundAll(want);
  }

  /** A peer has come. */
  join(partner: Partner): void {
    let told = 0;
    for (const want of this.wants) {
      if (want.coming > 0 || want.arrived) continue;
      this.#sound(partner, want);
      told += 1;
      if (told === mostTold) return;
    }
  }

  /** A peer has something of this: it is asked for what it was not asked for yet. */
  credit(partner: Partner): void {
    if (this.#partners.has(partner)) return;
    this.#partners.add(partner);
    for (const want of this.wants) {
      if (want.coming === 0 && !want.asked.has(partner)) this.#company.queue(want);
    }
  }

  /** A block came. */
  progress(): void {
    this.#pause = searchAfter;
    this.#searchAt = performance.now() + searchAfter;
  }

  /** Nothing is wanted any more: the search ends. */
  rest(): void {
    this.#searching?.abort();
    this.#searching = undefined;
    this.#pause = searchAfter;
  }

  /** Searches for providers of what does not come; called again and again. */
  tick(): void {
    const now = performance.now();
    if (now < this.#searchAt) return;
    const starving = this.#starving(now);
    if (starving === undefined) return;
    this.#searchAt = now + this.#pause;
    this.#pause = Math.min(longestPause, this.#pause * 2);
    starving.searches += 1;
    if (starving.searches > askAnewAfter) this.#askAnew();
    // The root first, then by turns.
    const cid = this.#root !== undefined && starving.searches % 2 === 1 ? this.#root : starving.cid;
    void this.#search(cid);
  }

  #starving(now: number): Want | undefined {
    const partners = this.#company.partners.size;
    for (const want of this.wants) {
      if (want.coming > 0 || want.arrived) continue;
      if (now - want.since >= searchAfter || want.refused.size >= partners) return want;
    }
    return undefined;
  }

  #askAnew(): void {
    for (const want of this.wants) {
      if (want.coming > 0) continue;
      want.refused.clear();
      want.owners.clear();
      for (const partner of want.asked) this.#ask(partner, want, false);
    }
  }

  async #search(cid: CID): Promise<void> {
    const { providers, partners } = this.#company;
    if (providers === undefined || this.#searching !== undefined) return;
    const searching = new AbortController();
    this.#searching = searching;
    const signal = AbortSignal.any([searching.signal, AbortSignal.timeout(searchMs)]);
    try {
      let found = 0;
      for await (const provider of providers.find(cid, signal)) {
        if (signal.aborted) break;
        const partner = partners.get(provider.id.toString());
        if (partner !== undefined) this.join(partner);
        else void this.#company.reach(provider, signal);
        found += 1;
        if (found === mostProviders) break;
      }
    } catch {
      // The next search may go better.
    } finally {
      if (this.#searching === searching) this.#searching = undefined;
    }
  }

  /** Who is likely to send it soonest; `busy` when those who might are asked for all they may be asked. */
  #best(want: Want, among: Set<Partner>): Partner | "busy" | undefined {
    let best: Partner | "busy" | undefined;
    let least = Number.POSITIVE_INFINITY;
    for (const partner of among) {
      if (this.#company.partners.get(partner.name) !== partner) among.delete(partner);
      if (want.refused.has(partner) || !among.has(partner)) continue;
      if (!partner.asks.hasRoom) {
        best ??= "busy";
        continue;
      }
      const { expected } = partner.asks;
      if (expected >= least) continue;
      best = partner;
      least = expected;
    }
    return best;
  }

  #ask(partner: Partner, want: Want, block: boolean): void {
    if (!partner.asks.ask(want.key, want, block)) return;
    want.asked.add(partner);
    if (block) want.coming += 1;
  }

  #soundAll(want: Want): void {
    const { partners } = this.#company;
    for (const partner of partners.values()) this.#sound(partner, want);
    if (want.asked.size === 0 && partners.size > 0) this.#company.queue(want);
  }

  /** Asks a peer whether it has the block, if it does not know yet that we want it. */
  #sound(partner: Partner, want: Want): void {
    if (!want.asked.has(partner)) this.#ask(partner, want, false);
  }
}

/** Keeps connections to the peers that it is given, and dials them again when they end. */
import type { NodeLog } from "../../util/log.ts";
import type { Multiaddr, PeerAddress } from "./multiaddr.ts";
import { type Dialer, dialPeer, type PeerToDial } from "./peer_dialer.ts";

/** Milliseconds between two dials: grows with each one that fails. */
const MIN_DELAY_MS = 5000;
const MAX_DELAY_MS = 600_000;
const DELAY_GROWTH = 1.5;
const DIAL_TIMEOUT_MS = 30_000;

export interface PeeringOptions {
  /** Milliseconds from the end of a connection to the next dial. */
  readonly minDelayMs?: number;
  /** Asks routing for the addresses of a peer that is given without any, and that is not reached at known ones. */
  readonly find?: (id: PeerAddress["id"], signal: AbortSignal) => Promise<readonly Multiaddr[]>;
}

/** A peer, until it is removed or other addresses take its place. */
interface Kept {
  readonly peer: PeerToDial;
  readonly end: AbortController;
  /** Set from the time at which a dial is decided upon until it is over. */
  timer?: NodeJS.Timeout;
}

export class Peering {
  readonly #libp2p: Dialer;
  readonly #log: NodeLog;
  readonly #minDelay: number;
  readonly #find: PeeringOptions["find"];
  readonly #kept = new Map<string, Kept>();
  #isRunning = false;

  constructor(
    libp2p: Dialer,
    peers: readonly PeerToDial[],
    log: NodeLog,
    { minDelayMs = MIN_DELAY_MS, find }: PeeringOptions = {},
  ) {
    this.#libp2p = libp2p;
    this.#log = log;
    this.#minDelay = minDelayMs;
    this.#find = find;
    for (const peer of peers) this.add(peer);
  }

  /** Connections to these peers are never trimmed. */
  protects(id: PeerAddress["id"]): boolean {
    return this.#kept.has(id.toString());
  }

  peers(): readonly PeerToDial[] {
    return [...this.#kept.values()].map(({ peer }) => peer);
  }

  /** Dials it at once while this runs, however long ago it was dialled in vain. Its former addresses are forgotten. */
  add(peer: PeerToDial): void {
    this.remove(peer.id);
    const kept = { peer, end: new AbortController() };
    this.#kept.set(peer.id.toString(), kept);
    if (this.#isRunning) this.#schedule(kept, 0);
  }

  /** Its connections stay. */
  remove(id: PeerAddress["id"]): void {
    const kept = this.#kept.get(id.toString());
    this.#kept.delete(id.toString());
    kept?.end.abort();
    clearTimeout(kept?.timer);
  }

  start(): void {
    this.#isRunning = true;
    this.#libp2p.addEventListener("peer:disconnect", this.#onDisconnect);
    for (const kept of this.#kept.values()) this.#schedule(kept, 0);
  }

  readonly #onDisconnect = ({ detail }: { readonly detail: PeerAddress["id"] }): void => {
    const kept = this.#kept.get(detail.toString());
    if (kept !== undefined) this.#schedule(kept, this.#minDelay);
  };

  #schedule(kept: Kept, delay: number): void {
    if (kept.end.signal.aborted || kept.timer !== undefined) return;
    // With jitter: two peers that lost each other do not dial each other at the same moment.
    kept.timer = setTimeout(() => void this.#dial(kept, delay), delay * (0.9 + Math.random() * 0.2)).unref();
  }

  async #dial(kept: Kept, delay: number): Promise<void> {
    const { id } = kept.peer;
    const signal = AbortSignal.any([kept.end.signal, AbortSignal.timeout(DIAL_TIMEOUT_MS)]);
    let next: number | undefined;
    try {
      if (this.#libp2p.getConnections(id).length === 0) await this.#connect(kept.peer, signal);
    } catch (error) {
      if (!kept.end.signal.aborted)
        this.#log.write("peering", "info", `${id} was not reached: ${(error as Error).message}`);
      next = Math.min(Math.max(delay * DELAY_GROWTH, this.#minDelay), MAX_DELAY_MS);
    }
    delete kept.timer;
    if (next !== undefined) this.#schedule(kept, next);
    // It may have disconnected during the dial.
    else if (this.#libp2p.getConnections(id).length === 0) this.#schedule(kept, this.#minDelay);
  }

  async #connect(peer: PeerToDial, signal: AbortSignal): Promise<void> {
    try {
      await dialPeer(this.#libp2p, peer, signal);
    } catch (error) {
      if (peer.addresses.length > 0) throw error;
      const addresses = (await this.#find?.(peer.id, signal)) ?? [];
      if (addresses.length === 0) throw error;
      await dialPeer(this.#libp2p, { id: peer.id, addresses }, signal);
    }
  }

  stop(): void {
    this.#isRunning = false;
    this.#libp2p.removeEventListener("peer:disconnect", this.#onDisconnect);
    for (const { peer } of [...this.#kept.values()]) this.remove(peer.id);
  }
}

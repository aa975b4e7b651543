/** Keeps connections to the peers of `Peering.Peers`, and dials them again when they end. */
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
  /** Asks routing for the addresses of a peer that is configured without any, and that is not reached at known ones. */
  readonly find?: (id: PeerAddress["id"], signal: AbortSignal) => Promise<readonly Multiaddr[]>;
}

export class Peering {
  readonly #libp2p: Dialer;
  readonly #log: NodeLog;
  readonly #minDelay: number;
  readonly #find: PeeringOptions["find"];
  readonly #peers = new Map<string, PeerToDial>();
  readonly #timers = new Map<string, NodeJS.Timeout>();
  readonly #stop = new AbortController();

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
    for (const peer of peers) this.#peers.set(peer.id.toString(), peer);
  }

  /** Connections to these peers are never trimmed. */
  protects(id: PeerAddress["id"]): boolean {
    return this.#peers.has(id.toString());
  }

  start(): void {
    this.#libp2p.addEventListener("peer:disconnect", this.#onDisconnect);
    for (const peer of this.#peers.values()) this.#schedule(peer, 0);
  }

  readonly #onDisconnect = ({ detail }: { readonly detail: PeerAddress["id"] }): void => {
    const peer = this.#peers.get(detail.toString());
    if (peer !== undefined) this.#schedule(peer, this.#minDelay);
  };

  #schedule(peer: PeerToDial, delay: number): void {
    const id = peer.id.toString();
    if (this.#stop.signal.aborted || this.#timers.has(id)) return;
    // With jitter: two peers that lost each other do not dial each other at the same moment.
    const timer = setTimeout(() => void this.#dial(peer, delay), delay * (0.9 + Math.random() * 0.2)).unref();
    this.#timers.set(id, timer);
  }

  async #dial(peer: PeerToDial, delay: number): Promise<void> {
    const signal = AbortSignal.any([this.#stop.signal, AbortSignal.timeout(DIAL_TIMEOUT_MS)]);
    let next: number | undefined;
    try {
      if (this.#libp2p.getConnections(peer.id).length === 0) await this.#connect(peer, signal);
    } catch (error) {
      this.#log.write("peering", "info", `${peer.id} was not reached: ${(error as Error).message}`);
      next = Math.min(Math.max(delay * DELAY_GROWTH, this.#minDelay), MAX_DELAY_MS);
    }
    this.#timers.delete(peer.id.toString());
    if (next !== undefined) this.#schedule(peer, next);
    // It may have disconnected during the dial.
    else if (this.#libp2p.getConnections(peer.id).length === 0) this.#schedule(peer, this.#minDelay);
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
    this.#stop.abort();
    this.#libp2p.removeEventListener("peer:disconnect", this.#onDisconnect);
    for (const timer of this.#timers.values()) clearTimeout(timer);
    this.#timers.clear();
  }
}

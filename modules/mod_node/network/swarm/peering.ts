/** Maintains connections to the given peers: dials them again when their connection ends. */
import type { NodeLog } from "../../util/log.ts";
import type { Multiaddr, PeerAddress } from "./multiaddr.ts";
import { type Dialer, dialPeer, type PeerToDial } from "./peer_dialer.ts";

/** Milliseconds between two dials; the delay grows with each failed dial. */
const MIN_DELAY_MS = 5000;
const MAX_DELAY_MS = 600_000;
const DELAY_GROWTH = 1.5;
const DIAL_TIMEOUT_MS = 30_000;

export interface PeeringOptions {
  /** Milliseconds from the end of a connection to the next dial. */
  readonly minDelayMs?: number;
  /**
   * Finds the addresses of a peer that is given without any, and is not reachable at the known
   * ones.
   */
  readonly find?: (id: PeerAddress["id"], signal: AbortSignal) => Promise<readonly Multiaddr[]>;
}

/** A peer, until it is removed or its addresses are replaced. */
interface PeeredPeer {
  readonly peer: PeerToDial;
  readonly end: AbortController;
  /** Set while a dial is scheduled or in progress. */
  timer?: NodeJS.Timeout;
}

export class Peering {
  readonly #libp2p: Dialer;
  readonly #log: NodeLog;
  readonly #minDelay: number;
  readonly #find: PeeringOptions["find"];
  readonly #peers = new Map<string, PeeredPeer>();
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

  /** Whether connections to this peer are exempt from trimming. */
  protects(id: PeerAddress["id"]): boolean {
    return this.#peers.has(id.toString());
  }

  peers(): readonly PeerToDial[] {
    return [...this.#peers.values()].map(({ peer }) => peer);
  }

  /**
   * Adds a peer, which is dialled at once while peering runs, regardless of earlier failures. Its
   * previous addresses are forgotten.
   */
  add(peer: PeerToDial): void {
    this.remove(peer.id);
    const peered = { peer, end: new AbortController() };
    this.#peers.set(peer.id.toString(), peered);
    if (this.#isRunning) this.#schedule(peered, 0);
  }

  /** Removes a peer; its connections stay open. */
  remove(id: PeerAddress["id"]): void {
    const peered = this.#peers.get(id.toString());
    this.#peers.delete(id.toString());
    peered?.end.abort();
    clearTimeout(peered?.timer);
  }

  start(): void {
    this.#isRunning = true;
    this.#libp2p.addEventListener("peer:disconnect", this.#onDisconnect);
    for (const peered of this.#peers.values()) this.#schedule(peered, 0);
  }

  readonly #onDisconnect = ({ detail }: { readonly detail: PeerAddress["id"] }): void => {
    const peered = this.#peers.get(detail.toString());
    if (peered !== undefined) this.#schedule(peered, this.#minDelay);
  };

  #schedule(peered: PeeredPeer, delay: number): void {
    if (peered.end.signal.aborted || peered.timer !== undefined) return;
    // The jitter prevents two peers that lost each other from dialling at the same moment.
    peered.timer = setTimeout(() => void this.#dial(peered, delay), delay * (0.9 + Math.random() * 0.2)).unref();
  }

  async #dial(peered: PeeredPeer, delay: number): Promise<void> {
    const { id } = peered.peer;
    const signal = AbortSignal.any([peered.end.signal, AbortSignal.timeout(DIAL_TIMEOUT_MS)]);
    let next: number | undefined;
    try {
      if (this.#libp2p.getConnections(id).length === 0) await this.#connect(peered.peer, signal);
    } catch (error) {
      if (!peered.end.signal.aborted)
        this.#log.write("peering", "info", `cannot reach ${id}: ${(error as Error).message}`);
      next = Math.min(Math.max(delay * DELAY_GROWTH, this.#minDelay), MAX_DELAY_MS);
    }
    delete peered.timer;
    if (next !== undefined) this.#schedule(peered, next);
    // The peer may have disconnected during the dial.
    else if (this.#libp2p.getConnections(id).length === 0) this.#schedule(peered, this.#minDelay);
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
    for (const { peer } of [...this.#peers.values()]) this.remove(peer.id);
  }
}

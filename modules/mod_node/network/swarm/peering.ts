/** Connections that are wanted: some at all times, and those to certain peers. */
import type { Libp2p } from "@libp2p/interface";
import type { NodeLog } from "../../util/log.ts";
import { byPeer, type Multiaddr, type PeerAddress, withPeer } from "./multiaddr.ts";

/** The part of libp2p that dials. */
export type Dialer = Pick<Libp2p, "dial" | "getPeers" | "getConnections" | "addEventListener" | "removeEventListener">;

interface WantedPeer {
  readonly id: PeerAddress["id"];
  readonly addresses: readonly Multiaddr[];
}

/** Milliseconds, and peers. */
const bootstrapping = { interval: 30_000, timeout: 10_000, fewest: 4 };

function shuffled<T>(items: readonly T[]): T[] {
  return items
    .map((item) => [Math.random(), item] as const)
    .sort(([a], [b]) => a - b)
    .map(([, item]) => item);
}

function dial(libp2p: Dialer, { id, addresses }: WantedPeer, signal: AbortSignal): Promise<unknown> {
  const known = addresses.map((address) => withPeer(address, id));
  return libp2p.dial(known.length === 0 ? id : known, { signal });
}

/** While there are few peers, dials some of a list, at random. Failures are no news: the next round comes. */
export class Bootstrapper {
  readonly #libp2p: Dialer;
  readonly #peers: readonly WantedPeer[];
  readonly #log: NodeLog;
  readonly #stop = new AbortController();
  #timer: NodeJS.Timeout | undefined;

  constructor(libp2p: Dialer, addresses: readonly PeerAddress[], log: NodeLog) {
    this.#libp2p = libp2p;
    this.#peers = byPeer(addresses);
    this.#log = log;
  }

  start(): void {
    if (this.#peers.length === 0) return;
    void this.round();
    this.#timer = setInterval(() => void this.round(), bootstrapping.interval).unref();
  }

  async round(): Promise<void> {
    const { fewest, timeout } = bootstrapping;
    const missing = fewest - this.#libp2p.getPeers().length;
    if (missing <= 0) return;
    const apart = this.#peers.filter(({ id }) => this.#libp2p.getConnections(id).length === 0);
    const chosen = shuffled(apart).slice(0, missing);
    const signal = AbortSignal.any([this.#stop.signal, AbortSignal.timeout(timeout)]);
    await Promise.all(
      chosen.map((peer) =>
        dial(this.#libp2p, peer, signal).catch((error: Error) =>
          this.#log.write("bootstrap", "info", `${peer.id} was not reached: ${error.message}`),
        ),
      ),
    );
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#stop.abort();
  }
}

/** Milliseconds. The pause grows by half with each dial that fails. */
const pauses = { first: 5000, most: 600_000, growth: 1.5, timeout: 30_000 };

/** Keeps connections to certain peers, and makes them anew when they end. */
export class Peering {
  readonly #libp2p: Dialer;
  readonly #log: NodeLog;
  readonly #firstPause: number;
  readonly #peers = new Map<string, WantedPeer>();
  readonly #timers = new Map<string, NodeJS.Timeout>();
  readonly #stop = new AbortController();

  /** `firstPause`: milliseconds after a connection has ended. */
  constructor(
    libp2p: Dialer,
    peers: readonly WantedPeer[],
    log: NodeLog,
    { firstPause = pauses.first }: { readonly firstPause?: number } = {},
  ) {
    this.#libp2p = libp2p;
    this.#log = log;
    this.#firstPause = firstPause;
    for (const peer of peers) this.#peers.set(peer.id.toString(), peer);
  }

  /** Their connections are never closed for being too many. */
  protects(id: PeerAddress["id"]): boolean {
    return this.#peers.has(id.toString());
  }

  start(): void {
    this.#libp2p.addEventListener("peer:disconnect", this.#left);
    for (const peer of this.#peers.values()) this.#later(peer, 0);
  }

  readonly #left = ({ detail }: { readonly detail: PeerAddress["id"] }): void => {
    const peer = this.#peers.get(detail.toString());
    if (peer !== undefined) this.#later(peer, this.#firstPause);
  };

  #later(peer: WantedPeer, pause: number): void {
    const id = peer.id.toString();
    if (this.#stop.signal.aborted || this.#timers.has(id)) return;
    // Peers that lost each other at one moment need not dial each other at one moment.
    const timer = setTimeout(() => void this.#dial(peer, pause), pause * (0.9 + Math.random() * 0.2)).unref();
    this.#timers.set(id, timer);
  }

  async #dial(peer: WantedPeer, pause: number): Promise<void> {
    const signal = AbortSignal.any([this.#stop.signal, AbortSignal.timeout(pauses.timeout)]);
    let next: number | undefined;
    try {
      if (this.#libp2p.getConnections(peer.id).length === 0) await dial(this.#libp2p, peer, signal);
    } catch (error) {
      this.#log.write("peering", "info", `${peer.id} was not reached: ${(error as Error).message}`);
      next = Math.min(Math.max(pause * pauses.growth, this.#firstPause), pauses.most);
    }
    this.#timers.delete(peer.id.toString());
    if (next !== undefined) this.#later(peer, next);
    // It may have left while it was being dialled.
    else if (this.#libp2p.getConnections(peer.id).length === 0) this.#later(peer, this.#firstPause);
  }

  stop(): void {
    this.#stop.abort();
    this.#libp2p.removeEventListener("peer:disconnect", this.#left);
    for (const timer of this.#timers.values()) clearTimeout(timer);
    this.#timers.clear();
  }
}

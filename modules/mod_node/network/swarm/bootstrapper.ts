/** Connects to bootstrap peers while the node has too few peers. */
import type { NodeLog } from "../../util/log.ts";
import { byPeer, type PeerAddress } from "./multiaddr.ts";
import { type Dialer, dialPeer, type PeerToDial } from "./peer_dialer.ts";

const INTERVAL_MS = 30_000;
/** Timeout of all dials of a round together. */
const TIMEOUT_MS = 10_000;
/** Number of connected peers at which no bootstrap peer is dialled. */
const ENOUGH_PEERS = 4;

export class Bootstrapper {
  readonly #libp2p: Dialer;
  readonly #peers: readonly PeerToDial[];
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
    this.#timer = setInterval(() => void this.round(), INTERVAL_MS).unref();
  }

  /** Dials as many random peers of the list as are missing. Never rejects: failures are logged. */
  async round(): Promise<void> {
    const missing = ENOUGH_PEERS - this.#libp2p.getPeers().length;
    if (missing <= 0) return;
    const unconnected = this.#peers.filter(({ id }) => this.#libp2p.getConnections(id).length === 0);
    const chosen = shuffled(unconnected).slice(0, missing);
    const signal = AbortSignal.any([this.#stop.signal, AbortSignal.timeout(TIMEOUT_MS)]);
    await Promise.all(
      chosen.map((peer) =>
        dialPeer(this.#libp2p, peer, signal).catch((error: Error) =>
          this.#log.write("bootstrap", "info", `cannot reach ${peer.id}: ${error.message}`),
        ),
      ),
    );
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#stop.abort();
  }
}

function shuffled<T>(items: readonly T[]): T[] {
  return items
    .map((item) => [Math.random(), item] as const)
    .sort(([a], [b]) => a - b)
    .map(([, item]) => item);
}

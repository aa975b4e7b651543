/**
 * Counts the bytes that streams have received and sent: in total, by peer and by protocol. Counting
 * costs one addition per chunk.
 */
import type {
  Connection,
  Libp2pEvents,
  Metric,
  MetricGroup,
  Metrics,
  Stream,
  TypedEventTarget,
} from "@libp2p/interface";
import type { PeerId } from "../../formats/peer_id.ts";
import { LRU } from "../../util/lru.ts";

/** Total bytes, and bytes per second. */
export interface BandwidthStats {
  readonly TotalIn: number;
  readonly TotalOut: number;
  readonly RateIn: number;
  readonly RateOut: number;
}

const SECOND_MS = 1000;
/** Weight of one second in the moving average. */
const WEIGHT = 1 - Math.exp(-1);
/** Maximum number of peers whose totals are stored after they disconnect. */
const MAX_PEERS = 4096;

/** Counts a total, and the exponentially weighted average of additions per second. */
export class Meter {
  readonly #now: () => number;
  #total = 0;
  #counted = 0;
  #rate = 0;
  #since: number;

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
    this.#since = now();
  }

  add(bytes: number): void {
    this.#settle();
    this.#total += bytes;
  }

  get total(): number {
    return this.#total;
  }

  /** Bytes per second, as of the last whole second. */
  get rate(): number {
    this.#settle();
    return this.#rate;
  }

  /**
   * Updates the average with the seconds that have passed, as if everything had been added in the
   * first of them.
   */
  #settle(): void {
    const passed = Math.floor((this.#now() - this.#since) / SECOND_MS);
    if (passed < 1) return;
    const instant = this.#total - this.#counted;
    this.#rate = this.#rate === 0 ? instant : this.#rate + WEIGHT * (instant - this.#rate);
    this.#rate *= (1 - WEIGHT) ** (passed - 1);
    if (this.#rate < 1e-13) this.#rate = 0;
    this.#counted = this.#total;
    this.#since += passed * SECOND_MS;
  }
}

class Traffic {
  readonly in = new Meter();
  readonly out = new Meter();

  stats(): BandwidthStats {
    return {
      TotalIn: this.in.total,
      TotalOut: this.out.total,
      RateIn: this.in.rate,
      RateOut: this.out.rate,
    };
  }
}

const ZERO: BandwidthStats = { TotalIn: 0, TotalOut: 0, RateIn: 0, RateOut: 0 };

function begin(all: { set(key: string, traffic: Traffic): unknown }, key: string): Traffic {
  const traffic = new Traffic();
  all.set(key, traffic);
  return traffic;
}

const ignored = () => undefined;
const metric: Metric & MetricGroup = {
  update: ignored,
  increment: ignored,
  decrement: ignored,
  reset: ignored,
  timer: () => ignored,
};
const register = () => ({ ...metric, observe: ignored });

/** An implementation of libp2p's metrics that only counts streams. */
export class Bandwidth implements Metrics {
  readonly #isOn: () => boolean;
  readonly #all = new Traffic();
  /** Traffic of connected peers, and of the most recent other peers. */
  readonly #peers = new LRU<string, Traffic>(MAX_PEERS, { isExempt: (peer) => this.#open.has(peer) });
  readonly #protocols = new Map<string, Traffic>();
  /** Open connections by peer. */
  readonly #open = new Map<string, Set<Connection>>();

  /** @param isOn returns whether newly opened streams are counted */
  constructor(events: TypedEventTarget<Libp2pEvents>, isOn: () => boolean = () => true) {
    this.#isOn = isOn;
    events.addEventListener("connection:open", ({ detail }) => {
      const peer = detail.remotePeer.toString();
      const all = this.#open.get(peer) ?? new Set();
      this.#open.set(peer, all.add(detail));
    });
    events.addEventListener("connection:close", ({ detail }) => {
      const peer = detail.remotePeer.toString();
      const all = this.#open.get(peer);
      if (all?.delete(detail) && all.size === 0) this.#open.delete(peer);
    });
  }

  total(): BandwidthStats {
    return this.#all.stats();
  }

  peer(id: PeerId): BandwidthStats {
    return this.#peers.peek(id.toString())?.stats() ?? ZERO;
  }

  protocol(name: string): BandwidthStats {
    return this.#protocols.get(name)?.stats() ?? ZERO;
  }

  /** Names of the protocols that were used. */
  protocols(): Iterable<string> {
    return this.#protocols.keys();
  }

  /** Counts the data that passes through `send`, and the data of the stream's `message` events. */
  trackProtocolStream(stream: Stream): void {
    if (!this.#isOn()) return;
    const counted = [this.#all, this.#protocols.get(stream.protocol) ?? begin(this.#protocols, stream.protocol)];
    const peer = this.#peerOf(stream);
    if (peer !== undefined) counted.push(this.#peers.get(peer) ?? begin(this.#peers, peer));
    const { send, dispatchEvent } = stream;
    stream.send = (data) => {
      for (const { out } of counted) out.add(data.byteLength);
      return send.call(stream, data);
    };
    stream.dispatchEvent = (event) => {
      if (event.type === "message") {
        const { byteLength } = (event as Event & { data: { byteLength: number } }).data;
        for (const traffic of counted) traffic.in.add(byteLength);
      }
      return dispatchEvent.call(stream, event);
    };
  }

  #peerOf(stream: Stream): string | undefined {
    for (const [peer, connections] of this.#open) {
      for (const { streams } of connections) if (streams.includes(stream)) return peer;
    }
    return undefined;
  }

  trackMultiaddrConnection = ignored;
  registerMetric = register as Metrics["registerMetric"];
  registerMetricGroup = register as Metrics["registerMetricGroup"];
  registerCounter = register as Metrics["registerCounter"];
  registerCounterGroup = register as Metrics["registerCounterGroup"];
  registerHistogram = register as Metrics["registerHistogram"];
  registerHistogramGroup = register as Metrics["registerHistogramGroup"];
  registerSummary = register as Metrics["registerSummary"];
  registerSummaryGroup = register as Metrics["registerSummaryGroup"];
  traceFunction = ((_name: string, traced: unknown) => traced) as Metrics["traceFunction"];
  createTrace = ignored;
}

/** One connected peer that exchanges blocks. */
import type { PeerId } from "@libp2p/interface";
import { Ledger } from "./ledger.ts";
import { Link, type LinkOptions, type OpenStream } from "./message_queue.ts";
import { Asks } from "./pending_requests.ts";

/** So many faults within the time below are one too many. */
const mostFaults = 16;
const forgivenMs = 1000;

export class Partner {
  readonly id: PeerId;
  readonly name: string;
  readonly ledger = new Ledger();
  readonly link: Link;
  readonly asks: Asks;
  #faults = 0;
  #faultAt = 0;

  /** `broken`: told of when what was on the way to the peer is lost. */
  constructor(
    id: PeerId,
    open: OpenStream,
    broken: (partner: Partner, reason: unknown) => void,
    options?: LinkOptions,
  ) {
    this.id = id;
    this.name = id.toString();
    const standing = () => this.asks.entries();
    this.link = new Link(open, { standing, broken: (reason) => broken(this, reason) }, options);
    this.asks = new Asks(this.link);
  }

  /**
   * Holds against the peer that it sent what nobody asked for, or no message at all; one fault is forgiven each second.
   * False when it has gone too far.
   */
  bears(weight = 1): boolean {
    const now = performance.now();
    this.#faults = Math.max(0, this.#faults - (now - this.#faultAt) / forgivenMs) + weight;
    this.#faultAt = now;
    return this.#faults <= mostFaults;
  }
}

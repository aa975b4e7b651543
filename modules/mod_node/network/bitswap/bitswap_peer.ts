/** One connected peer that exchanges blocks. */
import type { PeerId } from "@libp2p/interface";
import { Ledger } from "./ledger.ts";
import { MessageQueue, type MessageQueueOptions, type OpenStream } from "./message_queue.ts";
import { PendingRequests } from "./pending_requests.ts";

/** So many faults within the time below are one too many. */
const MAX_FAULTS = 16;
const FORGIVE_ONE_MS = 1000;

export class BitswapPeer {
  readonly id: PeerId;
  readonly name: string;
  readonly ledger = new Ledger();
  readonly queue: MessageQueue;
  readonly pending: PendingRequests;
  #faults = 0;
  #faultAt = 0;

  /** `broken`: told of when what was on the way to the peer is lost. */
  constructor(
    id: PeerId,
    open: OpenStream,
    broken: (partner: BitswapPeer, reason: unknown) => void,
    options?: MessageQueueOptions,
  ) {
    this.id = id;
    this.name = id.toString();
    const wantlist = () => this.pending.entries();
    this.queue = new MessageQueue(open, { wantlist, broken: (reason) => broken(this, reason) }, options);
    this.pending = new PendingRequests(this.queue);
  }

  /**
   * Holds against the peer that it sent what nobody asked for, or no message at all; one fault is forgiven each second.
   * False when it has gone too far.
   */
  addFaults(weight = 1): boolean {
    const now = performance.now();
    this.#faults = Math.max(0, this.#faults - (now - this.#faultAt) / FORGIVE_ONE_MS) + weight;
    this.#faultAt = now;
    return this.#faults <= MAX_FAULTS;
  }
}

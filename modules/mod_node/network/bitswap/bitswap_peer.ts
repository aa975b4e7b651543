/** One connected peer that speaks bitswap. */
import type { PeerId } from "@libp2p/interface";
import type { BlockPeer } from "./block_peer.ts";
import { Ledger } from "./ledger.ts";
import { MessageQueue, type MessageQueueOptions, type OpenStream } from "./message_queue.ts";
import { PendingRequests } from "./pending_requests.ts";

/** Maximum number of faults before a peer is disconnected. One fault is forgiven per second. */
const MAX_FAULTS = 16;
const FORGIVE_ONE_MS = 1000;

export class BitswapPeer implements BlockPeer {
  readonly id: PeerId;
  /** The text of its id. */
  readonly name: string;
  readonly ledger = new Ledger();
  readonly queue: MessageQueue;
  readonly pending: PendingRequests;
  /** `gone` after the peer has disconnected. */
  state: "ready" | "gone" = "ready";
  #faults = 0;
  #faultAt = 0;

  /** @param broken called when messages to the peer may be lost */
  constructor(
    id: PeerId,
    open: OpenStream,
    broken: (peer: BitswapPeer, reason: unknown) => void,
    options?: MessageQueueOptions,
  ) {
    this.id = id;
    this.name = id.toString();
    const wantlist = () => this.pending.entries();
    this.queue = new MessageQueue(open, { wantlist, broken: (reason) => broken(this, reason) }, options);
    this.pending = new PendingRequests(this.queue);
  }

  /**
   * Counts unrequested blocks or malformed messages. Returns false if the peer should be
   * disconnected.
   */
  addFaults(weight = 1): boolean {
    const now = performance.now();
    this.#faults = Math.max(0, this.#faults - (now - this.#faultAt) / FORGIVE_ONE_MS) + weight;
    this.#faultAt = now;
    return this.#faults <= MAX_FAULTS;
  }
}

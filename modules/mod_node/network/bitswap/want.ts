/** One block that somebody here waits for, and what each peer has said of it. */
import type { CID } from "multiformats/cid";
import type { BufferPool } from "../../storage/blockstore/buffer_pool.ts";
import { NodeError } from "../../util/errors.ts";
import type { BlockPeer } from "./block_peer.ts";

/** Wants that belong together, and the peers that are asked for them. */
export interface WantSession {
  readonly wants: Set<Want>;
  /** Asks for a block, unless it is on its way. */
  request(want: Want): void;
  /** A peer has connected. */
  addPeer(peer: BlockPeer): void;
  /** A source that had rested is ready. */
  sourceReady(source: BlockPeer): void;
  /** A peer has a block of this session. */
  peerHasBlocks(peer: BlockPeer): void;
  /** A block has arrived that was waited for. */
  blockArrived(): void;
  /** Nothing is wanted any more. */
  stopSearch(): void;
  /** To be called several times a second. */
  tick(): void;
}

/** A call that waits for the block. */
export interface Waiter {
  readonly want: Want;
  readonly session: WantSession;
  readonly cid: CID;
  /** Where its copy is taken from. */
  readonly buffers: BufferPool | undefined;
  readonly resolve: (bytes: Uint8Array) => void;
  readonly reject: (reason: unknown) => void;
}

export class Want {
  readonly key: string;
  /** The form of the CID that peers are asked for. */
  readonly cid: CID;
  readonly priority: number;
  readonly since = performance.now();
  readonly waiters = new Set<Waiter>();
  /** The block is here: no peer need be asked any more. */
  arrived = false;
  /** Number of searches for providers. */
  searches = 0;
  readonly #asked = new Set<BlockPeer>();
  readonly #haves = new Set<BlockPeer>();
  readonly #failed = new Set<BlockPeer>();
  #inFlight = 0;

  constructor(key: string, cid: CID, priority: number) {
    this.key = key;
    this.cid = cid;
    this.priority = priority;
  }

  /** Peers that were asked, for the block or whether they have it. */
  get asked(): ReadonlySet<BlockPeer> {
    return this.#asked;
  }

  /** Peers that said they have it. */
  get haves(): ReadonlySet<BlockPeer> {
    return this.#haves;
  }

  /** Peers that do not have it, or should have sent it by now. */
  get failed(): ReadonlySet<BlockPeer> {
    return this.#failed;
  }

  /** The block was requested of a peer that is still expected to send it. */
  get isInFlight(): boolean {
    return this.#inFlight > 0;
  }

  /** The session of the first waiter, which decides whom to ask. */
  get session(): WantSession | undefined {
    return this.waiters.values().next().value?.session;
  }

  /** A peer was asked. */
  requested(peer: BlockPeer, block: boolean): void {
    this.#asked.add(peer);
    if (block) this.#inFlight += 1;
  }

  /** A peer said that it has the block. */
  peerHas(peer: BlockPeer): void {
    this.#haves.add(peer);
    this.#failed.delete(peer);
  }

  /** A peer said that it does not have the block. @param wasInFlight the block had been requested of it */
  peerLacks(peer: BlockPeer, wasInFlight: boolean): void {
    this.#failed.add(peer);
    this.#haves.delete(peer);
    if (wasInFlight) this.#inFlight -= 1;
  }

  /** A peer of which the block was requested did not send it in time, or can send it no more. */
  requestFailed(peer: BlockPeer): void {
    this.#inFlight -= 1;
    this.#failed.add(peer);
  }

  /** A peer of which the block was requested rests: it may be asked again. */
  requestWithdrawn(): void {
    this.#inFlight -= 1;
  }

  /** A peer has disconnected. */
  forgetPeer(peer: BlockPeer): void {
    for (const peers of [this.#asked, this.#haves, this.#failed]) peers.delete(peer);
  }

  /** What peers said may be true no more. */
  forgetAnswers(): void {
    this.#failed.clear();
    this.#haves.clear();
  }

  /** Why a waiter gives up: the signal's reason, which as an error of the node gets what was tried as its cause. */
  abortReason(signal: AbortSignal): unknown {
    const { reason } = signal;
    if (!(reason instanceof NodeError) || reason.cause !== undefined) return reason;
    const { asked, failed, haves, searches } = this;
    const cause = new Error(
      `${this.cid} did not come: ${asked.size} peers were asked, ${haves.size} said that they have it, ` +
        `${failed.size} do not have it or gave no answer in time; providers were searched for ${searches} times`,
      { cause: reason },
    );
    const { message, code, kind } = reason;
    return new NodeError(message, { kind, cause, ...(code === undefined ? {} : { code }) });
  }
}

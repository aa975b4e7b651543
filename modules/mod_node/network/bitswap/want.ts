/** One block that local callers wait for, and the responses of each peer about it. */
import type { CID } from "multiformats/cid";
import type { BufferPool } from "../../storage/blockstore/buffer_pool.ts";
import { NodeError, reworded } from "../../util/errors.ts";
import type { BlockPeer } from "./block_peer.ts";

/** Wants that belong together, and the peers to request them from. */
export interface WantSession {
  readonly wants: Set<Want>;
  /** Requests a block, unless it is in flight. */
  requestBlock(want: Want): void;
  /** Called when a peer has connected. */
  addPeer(peer: BlockPeer): void;
  /** Called when a resting source is ready again. */
  sourceReady(source: BlockPeer): void;
  /** Called when a peer has a block of this session. */
  peerHasBlocks(peer: BlockPeer): void;
  /** Called when a wanted block has arrived. */
  blockArrived(): void;
  /** Called when nothing is wanted. */
  stopSearch(): void;
  /** Must be called several times a second. */
  tick(): void;
}

/** A call that waits for the block. */
export interface Waiter {
  readonly want: Want;
  readonly session: WantSession;
  readonly cid: CID;
  /** Pool that provides the buffer for the caller's copy. */
  readonly buffers: BufferPool | undefined;
  readonly resolve: (bytes: Uint8Array) => void;
  readonly reject: (reason: unknown) => void;
}

export class Want {
  readonly key: string;
  /** The form of the CID that requests to peers contain. */
  readonly cid: CID;
  readonly priority: number;
  readonly since = performance.now();
  readonly waiters = new Set<Waiter>();
  /** Whether the block is stored locally, so that no peer needs to be asked. */
  arrived = false;
  /** Number of searches for providers. */
  searches = 0;
  readonly #requestedPeers = new Set<BlockPeer>();
  readonly #haves = new Set<BlockPeer>();
  readonly #failed = new Set<BlockPeer>();
  #inFlight = 0;

  constructor(key: string, cid: CID, priority: number) {
    this.key = key;
    this.cid = cid;
    this.priority = priority;
  }

  /** Peers that were asked for the block, or whether they have it. */
  get requestedPeers(): ReadonlySet<BlockPeer> {
    return this.#requestedPeers;
  }

  /** Peers that have responded with HAVE. */
  get haves(): ReadonlySet<BlockPeer> {
    return this.#haves;
  }

  /** Peers that do not have the block, or did not send it in time. */
  get failed(): ReadonlySet<BlockPeer> {
    return this.#failed;
  }

  /** Whether a peer is still expected to send the block. */
  get isInFlight(): boolean {
    return this.#inFlight > 0;
  }

  /** The session of the first waiter, which decides which peers to ask. */
  get session(): WantSession | undefined {
    return this.waiters.values().next().value?.session;
  }

  /** Records a request to a peer. */
  requested(peer: BlockPeer, block: boolean): void {
    this.#requestedPeers.add(peer);
    if (block) this.#inFlight += 1;
  }

  /** Records that a peer has the block. */
  peerHas(peer: BlockPeer): void {
    this.#haves.add(peer);
    this.#failed.delete(peer);
  }

  /**
   * Records that a peer does not have the block. @param wasInFlight whether the block had been
   * requested from it
   */
  peerLacks(peer: BlockPeer, wasInFlight: boolean): void {
    this.#failed.add(peer);
    this.#haves.delete(peer);
    if (wasInFlight) this.#inFlight -= 1;
  }

  /** Records that a peer did not send the requested block in time, or can no longer send it. */
  requestFailed(peer: BlockPeer): void {
    this.#inFlight -= 1;
    this.#failed.add(peer);
  }

  /** Records that a peer pauses, so its request is void and may be repeated. */
  requestVoided(): void {
    this.#inFlight -= 1;
  }

  /** Forgets a peer that has disconnected. */
  forgetPeer(peer: BlockPeer): void {
    for (const peers of [this.#requestedPeers, this.#haves, this.#failed]) peers.delete(peer);
  }

  /** Forgets the responses of peers, which may be outdated. */
  forgetResponses(): void {
    this.#failed.clear();
    this.#haves.clear();
  }

  /**
   * Returns the error for a waiter whose signal aborted: the signal's reason. If that is a
   * NodeError, a description of what was tried becomes its cause.
   */
  abortReason(signal: AbortSignal): unknown {
    const { reason } = signal;
    if (!(reason instanceof NodeError) || reason.cause !== undefined) return reason;
    const { requestedPeers, failed, haves, searches } = this;
    const cause = new Error(
      `${this.cid} did not arrive: ${requestedPeers.size} peers were asked, ${haves.size} responded that they have it, ` +
        `${failed.size} do not have it or did not respond in time; providers were searched for ${searches} times`,
      { cause: reason },
    );
    return reworded(reason, reason.message, cause);
  }
}

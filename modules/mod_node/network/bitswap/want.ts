/** One block that somebody here waits for. */
import type { CID } from "multiformats/cid";
import type { BufferPool } from "../../storage/blockstore/buffer_pool.ts";
import { NodeError } from "../../util/errors.ts";
import type { BitswapPeer } from "./bitswap_peer.ts";
import type { Session } from "./session.ts";

/** A call that waits. */
export interface Waiter {
  readonly want: Want;
  readonly session: Session;
  readonly cid: CID;
  /** Where it takes its copy from. */
  readonly buffers: BufferPool | undefined;
  readonly resolve: (bytes: Uint8Array) => void;
  readonly reject: (reason: unknown) => void;
}

export class Want {
  readonly key: string;
  /** The form that is asked for. */
  readonly cid: CID;
  readonly priority: number;
  readonly since = performance.now();
  readonly waiters = new Set<Waiter>();
  /** Who was asked in any way. */
  readonly asked = new Set<BitswapPeer>();
  /** Who said that it has it. */
  readonly haves = new Set<BitswapPeer>();
  /** Who does not have it, or should have sent it by now. */
  readonly failed = new Set<BitswapPeer>();
  /** Peers that are expected to send it. */
  inFlight = 0;
  /** It is here: no one need be asked. */
  arrived = false;
  /** Times that the routing system was asked for providers. */
  searches = 0;

  constructor(key: string, cid: CID, priority: number) {
    this.key = key;
    this.cid = cid;
    this.priority = priority;
  }

  /** Whose call decides who is asked. */
  get session(): Session | undefined {
    return this.waiters.values().next().value?.session;
  }

  /** Why it is given up: the reason of the signal, with what was tried as its cause where it is one of the node's. */
  abortReason(signal: AbortSignal): unknown {
    const { reason } = signal;
    if (!(reason instanceof NodeError) || reason.cause !== undefined) return reason;
    const { asked, failed, haves, searches } = this;
    const cause = new Error(
      `${this.cid} did not come: ${asked.size} peers were asked, ${haves.size} said that they have it, ` +
        `${failed.size} do not have it or gave no answer in time; providers were searched for ${searches} times`,
    );
    const { message, code, kind } = reason;
    return new NodeError(message, { kind, cause, ...(code === undefined ? {} : { code }) });
  }
}

/** A source to request blocks from: a peer that speaks bitswap, or another kind of source. */
import type { ProviderRecord } from "../routing/provider_record.ts";
import type { Ledger } from "./ledger.ts";
import type { BlockPresence, WireBlock } from "./message.ts";
import type { PendingRequests } from "./pending_requests.ts";

export interface BlockPeer {
  /** The text of its id, or its address. */
  readonly name: string;
  readonly pending: PendingRequests;
  readonly ledger: Ledger;
  /**
   * A `resting` peer gets no requests until it is ready again; one that is `gone` never returns.
   */
  readonly state: "ready" | "resting" | "gone";
}

/** Sources of blocks in addition to bitswap. */
export interface OtherSources {
  readonly all: Iterable<BlockPeer>;
  /** Resolves to the sources at a provider's addresses that respond. Never rejects. */
  at(provider: ProviderRecord): Promise<readonly BlockPeer[]>;
  /** Must be called several times a second while blocks are wanted. */
  tick(): void;
}

/** Receives the responses of sources. */
export interface SourceReceiver {
  /** Receives wanted blocks with their keys, which have been verified. */
  blocksArrived(source: BlockPeer, blocks: readonly WireBlock[], keys: readonly string[]): Promise<unknown>;
  receivePresences(source: BlockPeer, presences: readonly BlockPresence[]): void;
  /** The source pauses: its pending requests go to other peers. */
  sourcePaused(source: BlockPeer): void;
  sourceReady(source: BlockPeer): void;
  removePeer(source: BlockPeer): void;
}

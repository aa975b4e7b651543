/** Whoever blocks are asked of: a peer that speaks bitswap, or another source. */
import type { ProviderRecord } from "../routing/provider_record.ts";
import type { Ledger } from "./ledger.ts";
import type { BlockPresence, WireBlock } from "./message.ts";
import type { PendingRequests } from "./pending_requests.ts";

export interface BlockPeer {
  /** The text of its id, or its address. */
  readonly name: string;
  readonly pending: PendingRequests;
  readonly ledger: Ledger;
  /** One that rests is asked for nothing, and will be ready again; one that is gone never will. */
  readonly state: "ready" | "resting" | "gone";
}

/** Where blocks come from beside bitswap. */
export interface OtherSources {
  readonly all: Iterable<BlockPeer>;
  /** The sources at a provider's addresses that answer. Never rejects. */
  at(provider: ProviderRecord): Promise<readonly BlockPeer[]>;
  /** To be called several times a second while blocks are wanted. */
  tick(): void;
}

/** Who is told what sources answer. */
export interface SourceReceiver {
  /** Blocks that are wanted, with their keys, which have been checked. */
  blocksCame(source: BlockPeer, blocks: readonly WireBlock[], keys: readonly string[]): Promise<unknown>;
  receivePresences(source: BlockPeer, presences: readonly BlockPresence[]): void;
  /** It rests: what was requested of it is requested of others. */
  sourceRests(source: BlockPeer): void;
  sourceReady(source: BlockPeer): void;
  removePeer(source: BlockPeer): void;
}

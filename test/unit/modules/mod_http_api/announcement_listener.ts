/** A module that hears what the node is to announce. */
import { failure, type LowLevelNode, type Node } from "modhost/node";
import type { CID } from "multiformats/cid";
import type { Module } from "#core/types.ts";

type Network = Awaited<ReturnType<LowLevelNode["network"]>>;

export interface AnnouncementListener {
  /** Roots, which are announced whether they are new or not, and single new blocks. */
  readonly roots: string[];
  readonly blocks: string[];
  /** Whether the node says that it is online; then it knows no peer. */
  online: boolean;
  /** To be loaded beside the node, which is offline itself, and announces nothing. */
  readonly mod_listener: (module: Module) => void;
}

export function announcementListener(): AnnouncementListener {
  const listener: AnnouncementListener = { roots: [], blocks: [], online: false, mod_listener };
  return listener;

  function mod_listener(module: Module): void {
    const { lowLevel } = module.depends("node") as unknown as Node;
    lowLevel.announce = (cids: readonly CID[]) => {
      listener.roots.push(...cids.map(String));
    };
    lowLevel.blocks.onNew = (cids: readonly CID[]) => {
      listener.blocks.push(...cids.map(String));
    };
    const { network } = lowLevel;
    const provide = () => ({
      [Symbol.asyncIterator]: () => ({ next: () => Promise.reject(failure("ROUTING_TABLE_EMPTY")) }),
    });
    Object.defineProperty(lowLevel, "online", { get: () => listener.online });
    lowLevel.network = async (...how) =>
      listener.online ? ({ routing: { provide } } as unknown as Network) : network(...how);
  }
}

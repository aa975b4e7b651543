/** A module that records what the node announces. */
import { failure, type LowLevelNode, type Node } from "modhost/node";
import type { CID } from "multiformats/cid";
import type { Module } from "#core/types.ts";

type Network = Awaited<ReturnType<LowLevelNode["network"]>>;

export interface AnnouncementListener {
  /** Roots are announced whether they are new or not; blocks only when they are new. */
  readonly roots: string[];
  readonly blocks: string[];
  /** Whether the node claims to be online. It then knows no peers. */
  online: boolean;
  /** To be loaded next to an offline node, which announces nothing itself. */
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

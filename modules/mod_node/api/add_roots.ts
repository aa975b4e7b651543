/**
 * Handles the roots of an add once they are stored: links them into the mutable namespace, and
 * announces them to the network.
 */
import type { CID } from "multiformats/cid";
import { AddedLinks } from "../content/mfs/link_added.ts";
import type { AddEvent } from "../content/unixfs/add.ts";
import type { LowLevelNode } from "../node/low_level_node.ts";
import { failure, NodeError, reworded } from "../util/errors.ts";
import type { ReadOptions, ShardingMode } from "./common.ts";

export interface RootOptions {
  readonly toFiles?: string | undefined;
  readonly announce?: boolean | "wait" | undefined;
  readonly sharding?: ShardingMode | undefined;
  readonly onlyHash?: boolean | undefined;
  readonly wrapWithDirectory?: boolean | undefined;
}

/** @throws NodeError for options that `toFiles` excludes */
export function requireLinkable({ toFiles, onlyHash, wrapWithDirectory }: RootOptions): void {
  if (toFiles === undefined) return;
  if (onlyHash === true)
    throw failure("OPTION_CONFLICT", { reason: "only-hash and to-files options are not compatible" });
  if (wrapWithDirectory === true)
    throw failure("OPTION_CONFLICT", { reason: "wrap-with-directory and to-files options are not compatible" });
}

/**
 * Yields the events, and links each root after its event was yielded. If the caller waits for the
 * announcement, it follows after the last event.
 */
export function withRoots(
  node: LowLevelNode,
  events: AsyncIterable<AddEvent>,
  options: RootOptions,
  how: ReadOptions,
): AsyncIterable<AddEvent> {
  const isAnnounced = options.announce === "wait" && options.onlyHash !== true;
  return options.toFiles === undefined && !isAnnounced ? events : linkedAndAnnounced(node, events, options, how);
}

async function* linkedAndAnnounced(
  node: LowLevelNode,
  events: AsyncIterable<AddEvent>,
  { toFiles, announce, sharding }: RootOptions,
  how: ReadOptions,
): AsyncGenerator<AddEvent> {
  const change = {
    ...how,
    flush: true,
    voids: node.lock.voids,
    sharding: sharding === "by size" ? node.sizeSharding : undefined,
  };
  const links = toFiles === undefined ? undefined : new AddedLinks(node.files, toFiles, change);
  const roots: CID[] = [];
  /** The root that is not linked yet. The guard protects it from garbage collection until then. */
  let open: CID | undefined;
  const unguard = node.pins.guard(() => (open === undefined ? [] : [open]));
  try {
    for await (const event of events) {
      const root = event.root === true ? event.built : undefined;
      open = links && root?.cid;
      yield event;
      if (root === undefined) continue;
      await links?.link({ name: event.unnamed === true ? undefined : event.name, ...root });
      if (announce === "wait") roots.push(root.cid);
    }
  } finally {
    unguard();
  }
  await announceToNetwork(node, roots, how);
}

/**
 * Announces blocks to the network and resolves when that is done; resolves at once while the node
 * is offline.
 *
 * @throws NodeError whose text begins with `fast-provide: `
 */
export async function announceToNetwork(
  node: LowLevelNode,
  cids: readonly CID[],
  { offline, signal = new AbortController().signal }: ReadOptions,
): Promise<void> {
  if (offline === true || !node.online) return;
  try {
    const { routing } = await node.network();
    for (const cid of cids) {
      for await (const _ of routing.provide(cid, signal));
      node.log.write("core/commands", "debug", `fast-provide-root: sync provide completed: ${cid}`);
    }
  } catch (error) {
    if (!(error instanceof NodeError)) throw error;
    node.log.write("core/commands", "warn", `fast-provide-root: sync provide failed: ${error.message}`);
    throw reworded(error, `fast-provide: ${error.message}`);
  }
}

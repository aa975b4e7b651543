/** What an add does with its roots once they are stored: it links them into the mutable namespace, and tells the network of them. */
import type { CID } from "multiformats/cid";
import { AddedLinks } from "../content/mfs/link_added.ts";
import type { AddEvent } from "../content/unixfs/add.ts";
import type { LowLevelNode } from "../low_level_node.ts";
import { NodeError } from "../util/errors.ts";
import type { Reading, ShardingMode } from "./common.ts";

export interface RootOptions {
  readonly toFiles?: string | undefined;
  readonly announce?: boolean | "wait" | undefined;
  readonly sharding?: ShardingMode | undefined;
  readonly onlyHash?: boolean | undefined;
  readonly wrapWithDirectory?: boolean | undefined;
}

/** @throws NodeError for options that do not go with `toFiles` */
export function requireLinkable({ toFiles, onlyHash, wrapWithDirectory }: RootOptions): void {
  if (toFiles === undefined) return;
  if (onlyHash === true) throw new NodeError("only-hash and to-files options are not compatible");
  if (wrapWithDirectory === true) throw new NodeError("wrap-with-directory and to-files options are not compatible");
}

/** Gives out the events, each root before it is linked; then tells the network of the roots, if that is to be waited for. */
export function withRoots(
  node: LowLevelNode,
  events: AsyncIterable<AddEvent>,
  options: RootOptions,
  how: Reading,
): AsyncIterable<AddEvent> {
  const isTold = options.announce === "wait" && options.onlyHash !== true;
  return options.toFiles === undefined && !isTold ? events : linkedAndTold(node, events, options, how);
}

async function* linkedAndTold(
  node: LowLevelNode,
  events: AsyncIterable<AddEvent>,
  { toFiles, announce, sharding }: RootOptions,
  how: Reading,
): AsyncGenerator<AddEvent> {
  const change = {
    ...how,
    flush: true,
    voids: node.lock.voids,
    sharding: sharding === "by size" ? node.sizeSharding : undefined,
  };
  const links = toFiles === undefined ? undefined : new AddedLinks(node.files, toFiles, change);
  const told: CID[] = [];
  /** Not linked yet: nothing may keep it. */
  let open: CID | undefined;
  const unguard = node.pins.guard(() => (open === undefined ? [] : [open]));
  try {
    for await (const event of events) {
      const root = event.root === true ? event.built : undefined;
      open = links && root?.cid;
      yield event;
      if (root === undefined) continue;
      await links?.link({ name: event.unnamed === true ? undefined : event.name, ...root });
      if (announce === "wait") told.push(root.cid);
    }
  } finally {
    unguard();
  }
  await tellNetwork(node, told, how);
}

/** Resolves when the network is told of these, or at once while it is not there. @throws NodeError, its text begins with `fast-provide: ` */
export async function tellNetwork(
  node: LowLevelNode,
  cids: readonly CID[],
  { offline, signal = new AbortController().signal }: Reading,
): Promise<void> {
  if (offline === true || !node.online) return;
  try {
    const { routing } = await node.network();
    for (const cid of cids) for await (const _ of routing.provide(cid, signal));
  } catch (error) {
    if (!(error instanceof NodeError)) throw error;
    throw new NodeError(`fast-provide: ${error.message}`, { cause: error });
  }
}

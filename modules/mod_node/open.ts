/** Opens the parts of a node over a repo. */
import { rm } from "node:fs/promises";
import type { NodeOptions } from "./low_level_node.ts";
import { openStores } from "./migration/open_stores/open.ts";
import { seed } from "./migration/seed.ts";
import { unmountStale } from "./mount/mounts.ts";
import { closeAll, LocalNode } from "./node.ts";
import { openRepo } from "./storage/repo/repo.ts";

/** Of `NodeOptions`, all of them. */
const optionNames: Readonly<Record<keyof NodeOptions, true>> = {
  repo: true,
  data: true,
  init: true,
  profile: true,
  apiAddress: true,
  document: true,
  identity: true,
  overrides: true,
  offline: true,
  stores: true,
  pubsub: true,
  namesOverPubsub: true,
  onNotice: true,
  signal: true,
};

/** @throws TypeError, for programs that no compiler has checked */
function requireOptions(options: NodeOptions | undefined): void {
  if (typeof options?.repo !== "string" || options.repo === "")
    throw new TypeError('createNode takes { repo: "FOLDER" }');
  const unknown = Object.keys(options).find((name) => !Object.hasOwn(optionNames, name));
  if (unknown === undefined) return;
  throw new TypeError(`createNode has no option ${unknown}; it has ${Object.keys(optionNames).join(", ")}`);
}

/**
 * Opens a repo, made when it is not there, and all that the node keeps in it.
 *
 * @throws TypeError of options that are none, NodeError as `openRepo`
 */
export async function openNode(options: NodeOptions): Promise<LocalNode> {
  requireOptions(options);
  const { profile = options.document === undefined ? "local" : "" } = options;
  const repo = await openRepo(options.repo, { ...options, profile });
  const closing: (() => Promise<void>)[] = [() => repo.close()];
  try {
    await unmountStale(repo);
    const { blocks, metadata } = await (options.stores ?? ((own) => openStores(own, options)))(repo);
    closing.unshift(
      () => blocks.close(),
      () => metadata.close(),
    );
    const node = new LocalNode(repo, { blocks, metadata }, options, closing);
    closing.unshift(
      () => node.mounts.unmount(),
      () => node.goOffline(),
      () => node.files.close(),
    );
    // What a killed process may have left.
    await rm(node.scratch, { recursive: true, force: true });
    await seed(node);
    return node;
  } catch (error) {
    await closeAll(closing).catch(() => undefined);
    throw error;
  }
}

/** Exports, imports and counts whole DAGs. */
import type { CID } from "multiformats/cid";
import { type CarImportOptions, importCar } from "../content/car/import.ts";
import { inSession } from "../content/dag/reader.ts";
import { walk } from "../content/dag/walk.ts";
import { CidSet } from "../formats/cid/set.ts";
import { parseCid } from "../formats/cid/text.ts";
import { linksOf } from "../formats/ipld/links.ts";
import type { LowLevelNode } from "../node/low_level_node.ts";
import { TimeSlices } from "../util/async/steps.ts";
import { failure, failures, NodeError } from "../util/errors.ts";
import { announceToNetwork } from "./add_roots.ts";
import { type CarSources, manyCandidates } from "./candidates.ts";
import { type CallOptions, type IpfsPath, pathText, type ReadOptions, readOptions } from "./common.ts";

export function rootIn(given: IpfsPath): CID {
  if (typeof given !== "string") return given as CID;
  try {
    return parseCid(given);
  } catch (error) {
    const reason = "unable to parse root specification (currently only bare CIDs are supported)";
    throw new NodeError("INVALID_CID", `${reason}: ${(error as Error).message}`, { cause: error });
  }
}

/** Adds to the error for a missing block how that block could be fetched. */
export async function* withRemedy(
  archive: AsyncIterable<Uint8Array>,
  offline: boolean,
  isOnline: () => boolean,
): AsyncGenerator<Uint8Array> {
  try {
    yield* archive;
  } catch (error) {
    if (!(error instanceof NodeError) || error.code !== "NODE_NOT_FOUND" || (!offline && isOnline())) throw error;
    const remedy = offline ? "without the offline flag" : "after attaching to the network";
    throw failure("DAG_NOT_EXPORTED", { reason: failures.NODE_NOT_FOUND, remedy }, error);
  }
}

/**
 * Stores the blocks of the archives, then pins their roots one after the other, then announces the
 * roots that are stored locally.
 */
export async function* imported(
  node: LowLevelNode,
  archives: CarSources,
  {
    pinRoots = true,
    counts,
    maxBlock,
    maxInline,
    rules = "0.43",
    announce = false,
    ...options
  }: CallOptions &
    CarImportOptions & {
      readonly pinRoots?: boolean | undefined;
      readonly announce?: boolean | "wait" | undefined;
    },
) {
  const how = readOptions(options);
  const { signal } = how;
  const roots = new Map<string, CID>();
  const unguard = node.pins.guard(() => roots.values());
  try {
    const slices = new TimeSlices();
    await node.lock.withShared(async () => {
      for await (const { content } of manyCandidates(archives)) {
        if (content === undefined) throw failure("INPUT_INVALID", { reason: "expected a file handle" });
        for (const cid of await importCar(node.blocks, content, { counts, maxBlock, maxInline, rules })) {
          roots.set(cid.toString(), cid);
          await slices.due();
        }
      }
      await node.sync();
    }, signal);
    let failed = 0;
    for (const cid of pinRoots ? roots.values() : []) {
      const pinError = await pinRoot(node, cid, signal);
      if (pinError !== undefined) failed += 1;
      yield { root: { cid, pinErrorMsg: pinError?.message ?? "", pinError } };
      await slices.due();
    }
    if (failed > 0 && rules === "0.9")
      throw failure("PIN_FAILED", { reason: `unable to pin all roots: ${failed} out of ${roots.size} failed` });
    if (announce !== false) await announceRoots(node, roots.values(), announce, how);
  } finally {
    unguard();
  }
}

async function announceRoots(node: LowLevelNode, roots: Iterable<CID>, announce: true | "wait", how: ReadOptions) {
  const here: CID[] = [];
  const slices = new TimeSlices();
  for (const cid of roots) {
    if (await node.blocks.has(cid)) here.push(cid);
    await slices.due();
  }
  if (announce === "wait") return announceToNetwork(node, here, how);
  if (how.offline !== true) node.announce(here);
}

/** Pins a root. Resolves to the error if the root cannot be pinned. */
async function pinRoot(node: LowLevelNode, cid: CID, signal: ReadOptions["signal"]): Promise<NodeError | undefined> {
  try {
    const found = await node.blocks.find(cid);
    if (found === undefined) throw failure("BLOCKSTORE_NOT_FOUND", { cid: String(cid) });
    linksOf(cid, found);
    await node.pins.add(cid, "recursive", { signal, offline: true });
    return undefined;
  } catch (error) {
    if (!(error instanceof NodeError)) throw error;
    return error;
  }
}

/**
 * Counts the blocks below a root and their bytes. Yields after each block with `progress`,
 * otherwise once.
 */
export async function* counted(
  node: LowLevelNode,
  root: IpfsPath,
  { progress = true, ...options }: CallOptions & { readonly progress?: boolean | undefined },
) {
  const how = readOptions(options);
  const { cid, remainder } = await node.resolve(pathText(root), how);
  if (remainder.length > 0) {
    throw failure("NOT_SUPPORTED", { reason: "cannot return size for anything other than a DAG with a root CID" });
  }
  const read = node.reader(inSession(how));
  linksOf(cid, await read(cid));
  let size = 0;
  let numBlocks = 0;
  try {
    for await (const block of walk(cid, { read, signal: how.signal, skipLeaves: true })) {
      size += block.bytes?.length ?? (await node.blocks.size(block.cid)) ?? (await read(block.cid)).length;
      numBlocks += 1;
      if (progress) yield { size, numBlocks };
    }
  } catch (error) {
    if (!(error instanceof NodeError)) throw error;
    throw failure("DAG_NOT_TRAVERSED", { reason: error.message }, error);
  }
  if (!progress) yield { size, numBlocks };
}

/** Sizes of several DAGs. */
export interface DagSum {
  /** The number of distinct blocks in all DAGs, and their bytes. */
  readonly uniqueBlocks: number;
  readonly totalSize: number;
  /** Bytes of blocks that were visited more than once. */
  readonly sharedSize: number;
  readonly dags: readonly { readonly cid: CID; readonly size: number; readonly numBlocks: number }[];
  /** Whether this is the last result. */
  readonly over: boolean;
}

interface Sum {
  readonly cid: CID;
  size: number;
  numBlocks: number;
}

/**
 * Yields the sizes of several DAGs and of the blocks that they share; with `progress` also after
 * each block.
 */
export async function* summed(
  node: LowLevelNode,
  roots: readonly IpfsPath[],
  { progress = true, ...options }: CallOptions & { readonly progress?: boolean | undefined },
): AsyncGenerator<DagSum, void, undefined> {
  const how = readOptions(options);
  const read = node.reader(inSession(how));
  const visited = new CidSet();
  const dags: Sum[] = [];
  const all = { uniqueBlocks: 0, totalSize: 0, sharedSize: 0 };
  const totals = () => ({ ...all, dags: dags.map((dag) => ({ ...dag })) });
  for (const root of roots) {
    const { cid, remainder } = await node.resolve(pathText(root), how);
    if (remainder.length > 0) {
      throw failure("NOT_SUPPORTED", { reason: "cannot return size for anything other than a DAG with a root CID" });
    }
    const dag: Sum = { cid, size: 0, numBlocks: 0 };
    dags.push(dag);
    try {
      for await (const block of walk(cid, { read, signal: how.signal, skipLeaves: true })) {
        const size = block.bytes?.length ?? (await node.blocks.size(block.cid)) ?? (await read(block.cid)).length;
        dag.size += size;
        dag.numBlocks += 1;
        if (visited.add(block.cid)) {
          all.uniqueBlocks += 1;
          all.totalSize += size;
        } else all.sharedSize += size;
        if (progress) yield { ...totals(), over: false };
      }
    } catch (error) {
      if (!(error instanceof NodeError)) throw error;
      throw failure("DAG_NOT_TRAVERSED", { reason: error.message }, error);
    }
  }
  yield { ...totals(), over: true };
}

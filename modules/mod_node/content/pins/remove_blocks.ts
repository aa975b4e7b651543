/** Removes blocks that nothing pins, for `block/rm`. */
import type { CID } from "multiformats/cid";
import { usualForms } from "../../formats/cid/make.ts";
import type { BlockService } from "../../storage/blockstore/block_service.ts";
import { failure, type NodeError } from "../../util/errors.ts";
import type { Pins } from "./pins.ts";

export interface RemovedBlock {
  readonly cid: CID;
  /** Why the block was not removed. */
  readonly fault: NodeError | undefined;
}

/**
 * Removes those of the blocks that may be removed. Durable when it resolves. The caller holds the
 * lock of garbage collection exclusively. With `ignoreMissing` a missing block counts as removed.
 */
export async function removeBlocks(
  blocks: BlockService,
  pins: Pins,
  cids: readonly CID[],
  { ignoreMissing, signal }: { readonly ignoreMissing: boolean; readonly signal?: AbortSignal | undefined },
): Promise<RemovedBlock[]> {
  // If all forms of a CID share one block, a pin of any form retains it.
  const formsOf = (cid: CID) => (blocks.store.joinsForms === true ? [cid, ...usualForms(cid.multihash)] : [cid]);
  const modeOf = async (cid: CID) => (await Promise.all(formsOf(cid).map((form) => pins.mode(form)))).find(Boolean);
  const modes = await Promise.all(cids.map(modeOf));
  const loose = cids.filter((_, at) => modes[at] === undefined).flatMap(formsOf);
  const through = loose.length === 0 ? new Map<string, CID>() : await pins.rootsAbove(loose, signal);
  const doomed = new Map<string, CID>();
  const results: RemovedBlock[] = [];
  for (const [at, cid] of cids.entries()) {
    const fault = await faultOf(cid, modes[at]);
    if (fault === undefined) doomed.set(cid.toString(), cid);
    results.push({ cid, fault });
  }
  if (doomed.size > 0) await blocks.store.delete([...doomed.values()]);
  return results;

  async function faultOf(cid: CID, mode: string | undefined): Promise<NodeError | undefined> {
    const text = cid.toString();
    const root = formsOf(cid).flatMap((form) => through.get(form.toString()) ?? [])[0];
    if (mode !== undefined) return failure("PINNED", { reason: `pinned: ${mode}` });
    if (root !== undefined) return failure("PINNED", { reason: `pinned via ${root}` });
    const here = !doomed.has(text) && (await blocks.has(cid));
    return here || ignoreMissing ? undefined : failure("BLOCKSTORE_NOT_FOUND", { cid: text });
  }
}

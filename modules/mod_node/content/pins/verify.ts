/** Checks whether everything below pins is on this machine, for `pin/verify`. */
import type { CID } from "multiformats/cid";
import { CidSet } from "../../formats/cid/set.ts";
import type { BlockService } from "../../storage/blockstore/block_service.ts";
import { failure } from "../../util/errors.ts";
import { nodeReader } from "../dag/reader.ts";
import { walk } from "../dag/walk.ts";
import type { Pins } from "./pins.ts";

export interface PinStatus {
  readonly root: CID;
  /** Missing and malformed blocks below the pin; empty if the pin is complete. */
  readonly bad: readonly { readonly cid: CID; readonly message: string }[];
}

/** Yields the state of each recursive pin. Reads local blocks only. */
export async function* verifyPins(
  blocks: BlockService,
  pins: Pins,
  signal: AbortSignal | undefined,
): AsyncGenerator<PinStatus, void, undefined> {
  const read = nodeReader(blocks, { offline: true, signal, evenDenied: true });
  // Blocks below complete pins. The walks of further pins skip them.
  let whole = new CidSet();
  for await (const root of pins.list("recursive")) {
    const bad: { cid: CID; message: string }[] = [];
    const failed = (cid: CID, { message }: Error) => bad.push({ cid, message });
    for await (const { cid, bytes } of walk(root, { read, seen: whole, skipLeaves: true, failed, signal })) {
      if (bytes === undefined && !(await blocks.has(cid))) failed(cid, failure("NODE_NOT_FOUND", { cid: String(cid) }));
    }
    if (bad.length > 0) whole = new CidSet();
    yield { root, bad };
  }
}

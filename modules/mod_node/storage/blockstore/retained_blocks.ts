/** The set of blocks that a garbage collection must not remove. */
import type { CID } from "multiformats/cid";
import { CidSet } from "../../formats/cid/set.ts";
import type { BlockStore } from "./store.ts";

/**
 * Distinguishes blocks whose links were followed from blocks that are retained without the blocks
 * below them, such as direct pins. A walk that reaches one of the latter must still follow its
 * links.
 */
export class RetainedBlocks {
  /** Blocks whose links were followed. Walks share it as their `seen`. */
  readonly walked = new CidSet();
  /** Blocks that are retained without the blocks below them. */
  readonly #alone = new CidSet();

  addAlone(cid: CID): void {
    this.#alone.add(cid);
  }

  has(cid: CID): boolean {
    return this.walked.has(cid) || this.#alone.has(cid);
  }

  /**
   * Whether a stored form of a block is retained. A block can be read under any CID of its
   * multihash, so an unreferenced form is retained, too, while it is the only stored form of a
   * retained block.
   */
  keeps(cid: CID, store: Pick<BlockStore, "forms" | "joinsForms">): boolean | Promise<boolean> {
    if (this.has(cid)) return true;
    if (!this.walked.hasForm(cid) && !this.#alone.hasForm(cid)) return false;
    return store.joinsForms === true || store.forms(cid).then((forms) => !forms.some((form) => this.has(form)));
  }
}

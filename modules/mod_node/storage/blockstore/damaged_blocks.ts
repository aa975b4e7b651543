/** Tracks blocks whose stored copies are lost or damaged, until the blocks are stored again. */
import type { CID } from "multiformats/cid";
import { type FailureCode, NodeError } from "../../util/errors.ts";
import type { Block } from "./store.ts";

/** Codes of reads that find no bytes, or wrong ones, where a block is stored. */
const codes: ReadonlySet<FailureCode | undefined> = new Set<FailureCode>([
  "BLOCK_CORRUPT",
  "BLOCK_MISMATCH",
  "SEGMENT_GONE",
  "OBJECT_CUT_OFF",
]);

const MAX_TRACKED = 65_536;

export class DamagedBlocks {
  readonly #blocks = new Set<string>();
  /** Files or objects that were reported. */
  readonly #reported = new Set<string>();
  #count = 0;
  #first: string | undefined;
  /** Called with a sentence for the first damaged block of each file or object. */
  onFound: ((sentence: string) => void) | undefined;
  /** Called when `problem` changes. */
  onChange: (() => void) | undefined;

  /**
   * Number of damaged blocks found since the start. A block counts again when it is damaged again
   * after it was stored again.
   */
  get count(): number {
    return this.#count;
  }

  /** A sentence while there are damaged blocks. */
  get problem(): string | undefined {
    if (this.#blocks.size === 0) return undefined;
    return `reads have found ${this.#blocks.size} lost or damaged blocks that were not stored again; the first: ${this.#first}`;
  }

  /**
   * Records the error of a read, if it means damage. `path` names the file or object with the
   * block.
   */
  record(cid: CID, error: unknown, path: string | undefined): void {
    if (!NodeError.is(error) || !codes.has(error.code)) return;
    const name = nameOf(cid);
    if (this.#blocks.has(name) || this.#blocks.size >= MAX_TRACKED) return;
    this.#count += 1;
    const where = path ?? "the store";
    const sentence = `${cid} in ${where}: ${error.message}`;
    if (this.#blocks.size === 0) this.#first = sentence;
    this.#blocks.add(name);
    this.onChange?.();
    if (this.#reported.has(where)) return;
    this.#reported.add(where);
    this.onFound?.(`a block is lost or damaged: ${sentence}. Further ones there are only counted`);
  }

  /** Records that blocks are stored, which replaces damaged copies. */
  stored(blocks: readonly Block[]): void {
    if (this.#blocks.size === 0) return;
    const before = this.#blocks.size;
    for (const { cid } of blocks) this.#blocks.delete(nameOf(cid));
    if (this.#blocks.size < before) this.onChange?.();
  }
}

const nameOf = ({ multihash }: CID): string => Buffer.from(multihash.bytes).toString("latin1");

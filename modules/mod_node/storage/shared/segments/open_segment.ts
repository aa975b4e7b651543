/** A segment that this host is filling: a CAR file in the folder of the cache. */
import { createHash } from "node:crypto";
import type { SegmentFiles } from "../../blockstore/segments/files.ts";
import {
  type BlockLocation,
  type Form,
  formOf,
  keyOf,
  positionAt,
  sectionHead,
  segmentHeader,
} from "../../blockstore/segments/format.ts";
import { Log } from "../../blockstore/segments/log.ts";
import type { Block } from "../../blockstore/store.ts";
import { type IndexedBlock, sectionBytes } from "./index_file.ts";

/** No open segment comes near this length, so `Log` never begins another segment by itself. */
const NO_LIMIT = 2 ** 31;
/** Maximum number of blocks in a segment. Each is kept in memory until it is in the index. */
export const MAX_BLOCKS = 64 * 1024;

export class OpenSegment {
  /** Number of the segment on this host. */
  readonly number: number;
  readonly blocks: IndexedBlock[] = [];
  readonly #log: Log;
  readonly #sum = createHash("sha256").update(segmentHeader);
  #sha256: Uint8Array | undefined;
  #bytes = segmentHeader.length;

  private constructor(number: number, log: Log) {
    this.number = number;
    this.#log = log;
  }

  /**
   * Begins a segment. `bufferedBytes` is the number of bytes that may wait to be written.
   * @throws errors of the file system
   */
  static async begin(files: SegmentFiles, number: number, bufferedBytes: number): Promise<OpenSegment> {
    await files.begin(number);
    const end = positionAt(number, segmentHeader.length);
    const options = { segmentBytes: NO_LIMIT, bufferedBytes, onSynced: () => {} };
    return new OpenSegment(number, new Log(files, options, end, new Map([[number, segmentHeader.length]])));
  }

  /** Length of the CAR file in bytes. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Whether a block fits into a segment of at most this length. The first block always fits. */
  fits({ cid, bytes }: Block, segmentBytes: number): boolean {
    if (this.blocks.length === 0) return true;
    const more = sectionBytes({ multihash: cid.multihash.bytes, form: formOf(cid), length: bytes.length });
    return this.blocks.length < MAX_BLOCKS && this.#bytes + more <= segmentBytes;
  }

  get hasRoom(): boolean {
    return this.#log.hasRoom;
  }

  /**
   * Resolves when more blocks may be added.
   * @throws NodeError STORE_FULL
   */
  room(): Promise<void> {
    return this.#log.room();
  }

  /** Adds a block, which can be read when the call returns. */
  add(block: Block): OpenBlock {
    const { cid, bytes } = block;
    const form = formOf(cid);
    const head = sectionHead(cid.bytes, bytes.length);
    // The owner may overwrite the bytes after this call.
    this.#sum.update(head).update(bytes);
    this.#bytes += head.length + bytes.length;
    const { location, multihash } = this.#log.append(block);
    this.blocks.push({ multihash, form, offset: location.offset, length: location.length });
    return { multihash, form, location };
  }

  /**
   * Resolves with the hash of the file when everything is written. No block may be added after
   * that.
   * @throws NodeError STORE_FULL
   */
  async written(): Promise<Uint8Array> {
    await this.#log.sync();
    this.#sha256 ??= this.#sum.digest();
    return this.#sha256;
  }
}

export interface OpenBlock {
  readonly multihash: Uint8Array;
  readonly form: Form;
  readonly location: BlockLocation;
}

/** Blocks of segments that are not in the index yet. */
export class OpenBlocks {
  readonly #blocks = new Map<string, OpenBlock[]>();

  get isEmpty(): boolean {
    return this.#blocks.size === 0;
  }

  find(multihash: Uint8Array): readonly OpenBlock[] {
    return this.#blocks.get(keyOf(multihash)) ?? [];
  }

  all(): OpenBlock[] {
    return [...this.#blocks.values()].flat();
  }

  add(block: OpenBlock): void {
    const key = keyOf(block.multihash);
    const others = this.#blocks.get(key);
    if (others === undefined) this.#blocks.set(key, [block]);
    else others.push(block);
  }

  /** Removes the blocks of a segment that is in the index. */
  remove({ number, blocks }: OpenSegment): void {
    for (const { multihash } of blocks) {
      const key = keyOf(multihash);
      const left = this.#blocks.get(key)?.filter(({ location }) => location.segment !== number) ?? [];
      if (left.length === 0) this.#blocks.delete(key);
      else this.#blocks.set(key, left);
    }
  }
}

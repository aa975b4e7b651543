/** Writes blocks to segments of this host, unless they are already stored and readable. */
import type { CID } from "multiformats/cid";
import { identity } from "../../../formats/cid/hashes.ts";
import { failure } from "../../../util/errors.ts";
import { type BytesLocation, MAX_MULTIHASH } from "../../blockstore/segments/format.ts";
import type { Block, PutOptions } from "../../blockstore/store.ts";
import type { ListedCopies } from "./listed_copies.ts";
import type { SegmentWriter } from "./writer.ts";

export interface IntakeDeps {
  readonly writer: SegmentWriter;
  readonly copies: ListedCopies;
  /** Returns the listed location of a block, as far as this host knows. */
  readonly find: (cid: CID) => BytesLocation | undefined;
  /** Whether this host knows which blocks were removed before its session; `join` reads them. */
  readonly isJoined: () => boolean;
  readonly join: () => Promise<void>;
  /** Resolves when this host knows all commits of all hosts. */
  readonly readLog: () => Promise<void>;
}

/** A listed copy and whether it is intact. */
interface ListedCopy {
  readonly location: BytesLocation;
  readonly isWhole: boolean;
}

export class BlockIntake {
  readonly #deps: IntakeDeps;

  constructor(deps: IntakeDeps) {
    this.#deps = deps;
  }

  /**
   * Stores blocks; see `BlockStore.put`.
   * @throws NodeError STORE_UNAVAILABLE, STORE_FULL, SESSION_LOST
   */
  async put(blocks: readonly Block[], { onNew }: PutOptions): Promise<void> {
    // Checks all copies at once, so that adjacent blocks are fetched together.
    const copies = blocks.map((block) => this.#listedCopy(block));
    for (const copy of copies) copy?.catch(() => {});
    for (const [at, block] of blocks.entries()) {
      requireStorable(block.cid);
      await this.#write(block, await copies[at], onNew);
    }
  }

  async #write(block: Block, listed: ListedCopy | undefined, onNew: PutOptions["onNew"]): Promise<void> {
    const { writer, copies, find, isJoined, join } = this.#deps;
    const { cid, release } = block;
    // In the meantime another call may have stored the block or filled the segment.
    for (let copy = listed; ; ) {
      const location = isJoined() ? find(cid) : undefined;
      if (!isJoined()) await join();
      else if (location !== undefined && !isSame(location, copy?.location)) copy = await this.#listedCopy(block);
      else if (location !== undefined && copy?.isWhole === true) return release?.();
      else if (!writer.isReadyFor(block)) await writer.prepareFor(block);
      else {
        writer.add(block);
        if (location === undefined) onNew?.(cid);
        else copies.reportRepair(location);
        return;
      }
    }
  }

  /**
   * Checks the listed copy of a block; undefined when the block is not listed.
   * @throws NodeError STORE_UNAVAILABLE
   */
  #listedCopy({ cid, bytes }: Block): Promise<ListedCopy> | undefined {
    const { writer, copies, find, readLog } = this.#deps;
    const location = find(cid);
    if (location === undefined) return undefined;
    // This host still has the bytes of a segment that is being uploaded or was just committed.
    if (writer.isUnfound(location.segment)) return Promise.resolve({ location, isWhole: true });
    return copies.isWhole(location, bytes).then(async (isWhole) => {
      // The segment may have been merged into another one.
      if (!isWhole) await readLog();
      return { location, isWhole };
    });
  }
}

const isSame = (one: BytesLocation, other: BytesLocation | undefined): boolean =>
  one.segment === other?.segment && one.offset === other.offset;

function requireStorable(cid: CID): void {
  const { code, bytes } = cid.multihash;
  if (code !== identity.code && bytes.length <= MAX_MULTIHASH) return;
  throw failure("BLOCK_NOT_STORABLE", {
    cid: String(cid),
    reason: "its multihash is the block itself, or too long to be a key",
  });
}

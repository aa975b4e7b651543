import { setImmediate as nextTurn } from "node:timers/promises";
import { CID } from "multiformats/cid";
import { matches } from "../../formats/cid/hashes.ts";
import { failure } from "../../util/errors.ts";
import { ownBytes } from "../../util/own_bytes.ts";
import type { Block, BlockStore, PutOptions } from "./store.ts";

interface MemoryBlock {
  readonly bytes: Uint8Array;
  /** Forms by `cid.toString()`. */
  readonly forms: Map<string, CID>;
}

/**
 * Creates a block store in memory, for calculations that store nothing and for tests. `bytes`
 * counts data only.
 */
export const memoryBlocks = (): BlockStore => new MemoryBlocks();

const keyOf = (cid: CID): string => Buffer.from(cid.multihash.bytes).toString("latin1");

class MemoryBlocks implements BlockStore {
  readonly verifies = false;
  readonly #blocks = new Map<string, MemoryBlock>();
  #forms = 0;
  #closed = false;

  async get(cid: CID): Promise<Uint8Array | undefined> {
    return this.#find(cid);
  }

  async has(cid: CID): Promise<boolean> {
    return this.#find(cid) !== undefined;
  }

  async forms(cid: CID): Promise<readonly CID[]> {
    this.#mustBeOpen();
    return [...(this.#blocks.get(keyOf(cid))?.forms.values() ?? [])];
  }

  async size(cid: CID): Promise<number | undefined> {
    return this.#find(cid)?.length;
  }

  async put(blocks: readonly Block[], { onNew }: PutOptions = {}): Promise<void> {
    this.#mustBeOpen();
    for (const { cid, bytes } of blocks) {
      const key = keyOf(cid);
      const block = this.#blocks.get(key) ?? { bytes, forms: new Map() };
      this.#blocks.set(key, block);
      if (block.forms.has(cid.toString())) continue;
      // The CID is copied, because it may be a view of a large array.
      block.forms.set(cid.toString(), CID.decode(ownBytes(cid.bytes)));
      this.#forms += 1;
      onNew?.(cid);
    }
  }

  async sync(): Promise<void> {
    this.#mustBeOpen();
  }

  async delete(cids: readonly CID[]): Promise<boolean[]> {
    this.#mustBeOpen();
    return cids.map((cid) => {
      const block = this.#blocks.get(keyOf(cid));
      if (!block?.forms.delete(cid.toString())) return false;
      if (block.forms.size === 0) this.#blocks.delete(keyOf(cid));
      this.#forms -= 1;
      return true;
    });
  }

  async *keys(): AsyncGenerator<CID> {
    this.#mustBeOpen();
    for (const { forms } of this.#blocks.values()) {
      for (const cid of forms.values()) {
        yield cid;
        this.#mustBeOpen();
      }
      await nextTurn();
    }
  }

  async stat(): Promise<{ readonly blocks: number; readonly bytes: number }> {
    this.#mustBeOpen();
    let total = 0;
    for (const { bytes } of this.#blocks.values()) total += bytes.length;
    return { blocks: this.#forms, bytes: total };
  }

  async compact(signal?: AbortSignal): Promise<void> {
    this.#mustBeOpen();
    signal?.throwIfAborted();
  }

  async check(cid: CID): Promise<boolean | undefined> {
    const bytes = this.#find(cid);
    return bytes === undefined ? undefined : matches(cid, bytes);
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#blocks.clear();
  }

  #find(cid: CID): Uint8Array | undefined {
    this.#mustBeOpen();
    const block = this.#blocks.get(keyOf(cid));
    return block?.forms.has(cid.toString()) ? block.bytes : undefined;
  }

  #mustBeOpen(): void {
    if (this.#closed) throw failure("STORE_CLOSED");
  }
}

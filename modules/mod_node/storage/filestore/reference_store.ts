/** Stores references in the metadata store, by block. */
import type { CID } from "multiformats/cid";
import { raw } from "../../formats/cid/codecs.ts";
import { parseCid } from "../../formats/cid/text.ts";
import { pagedRange } from "../metadata/paged_range.ts";
import type { MetadataStore, MetadataWriter } from "../metadata/store.ts";
import { decodeReference, encodeReference, type Reference } from "./reference.ts";

export interface ReferencedBlock {
  readonly cid: CID;
  readonly reference: Reference;
}

const prefix = "filestore/";

/** The key of a block's reference. */
export const referenceKey = (cid: CID) => prefix + cid.toString();

/** A file contains the bytes of a raw block only: other blocks have a structure around the data. */
const canBeReferenced = ({ code }: CID) => code === raw;

/** Stores references. Changes are durable when a call resolves. */
export class ReferenceStore {
  readonly #metadata: MetadataStore;
  /**
   * Number of references. It is counted at the first request and updated by every change after
   * that.
   */
  #count: Promise<{ now: number }> | undefined;
  readonly #changing = new Set<Promise<unknown>>();

  constructor(metadata: MetadataStore) {
    this.#metadata = metadata;
  }

  async get(cid: CID): Promise<Reference | undefined> {
    const bytes = canBeReferenced(cid) ? await this.#metadata.get(referenceKey(cid)) : undefined;
    return bytes && decodeReference(bytes);
  }

  async has(cid: CID): Promise<boolean> {
    return canBeReferenced(cid) && this.#metadata.has(referenceKey(cid));
  }

  async put(blocks: readonly ReferencedBlock[]): Promise<void> {
    if (blocks.length === 0) return;
    await this.#change((writer) => {
      let more = 0;
      for (const { cid, reference } of blocks) {
        const key = referenceKey(cid);
        if (!writer.has(key)) more += 1;
        writer.put(key, encodeReference(reference));
      }
      return { result: undefined, more };
    });
  }

  /** Deletes references. Resolves with true for each that existed. */
  async delete(cids: readonly CID[]): Promise<boolean[]> {
    if (!cids.some(canBeReferenced)) return cids.map(() => false);
    return this.#change((writer) => {
      const result = cids.map((cid) => writer.delete(referenceKey(cid)));
      return { result, more: -result.filter(Boolean).length };
    });
  }

  async count(): Promise<number> {
    this.#count ??= this.#counted();
    return (await this.#count).now;
  }

  async #counted(): Promise<{ now: number }> {
    try {
      await Promise.allSettled(this.#changing);
      let now = 0;
      for await (const _ of this.#metadata.range({ prefix })) now += 1;
      return { now };
    } catch (error) {
      this.#count = undefined;
      throw error;
    }
  }

  /**
   * Runs a change. A count waits for running changes, and a change waits for a running count.
   * `more` is the difference that the change makes to the count.
   */
  async #change<T>(run: (writer: MetadataWriter) => { readonly result: T; readonly more: number }): Promise<T> {
    const count = this.#count && (await this.#count);
    const changing = this.#metadata.transaction(run);
    this.#changing.add(changing);
    try {
      const { result, more } = await changing;
      if (count !== undefined) count.now += more;
      return result;
    } finally {
      this.#changing.delete(changing);
    }
  }

  async *list(): AsyncGenerator<ReferencedBlock, void, undefined> {
    for await (const [key, value] of pagedRange(this.#metadata, prefix)) {
      yield { cid: parseCid(key.slice(prefix.length)), reference: decodeReference(value) };
    }
  }
}

/** References by block, in the metadata store. */
import type { CID } from "multiformats/cid";
import { raw } from "../cid/codecs.ts";
import { parseCid } from "../cid/text.ts";
import type { MetadataStore } from "../metadata/store.ts";
import { decodeReference, encodeReference, type Reference } from "./reference.ts";

export interface ReferredBlock {
  readonly cid: CID;
  readonly reference: Reference;
}

const prefix = "filestore/";

/** Where the reference of a block is kept. */
export const referenceKey = (cid: CID) => prefix + cid.toString();

/** Only raw blocks can stand in a file as they are. */
const mayBeReferred = ({ code }: CID) => code === raw;

/** What was changed is on the disk when a call resolves. */
export class References {
  readonly #metadata: MetadataStore;

  constructor(metadata: MetadataStore) {
    this.#metadata = metadata;
  }

  async get(cid: CID): Promise<Reference | undefined> {
    const bytes = mayBeReferred(cid) ? await this.#metadata.get(referenceKey(cid)) : undefined;
    return bytes && decodeReference(bytes);
  }

  async has(cid: CID): Promise<boolean> {
    return mayBeReferred(cid) && this.#metadata.has(referenceKey(cid));
  }

  async put(blocks: readonly ReferredBlock[]): Promise<void> {
    if (blocks.length === 0) return;
    await this.#metadata.transaction((writer) => {
      for (const { cid, reference } of blocks) writer.put(referenceKey(cid), encodeReference(reference));
    });
  }

  /** True for each that was there. */
  async delete(cids: readonly CID[]): Promise<boolean[]> {
    if (!cids.some(mayBeReferred)) return cids.map(() => false);
    return this.#metadata.transaction((writer) => cids.map((cid) => writer.delete(referenceKey(cid))));
  }

  async *list(): AsyncGenerator<ReferredBlock, void, undefined> {
    for await (const [key, value] of this.#metadata.range({ prefix })) {
      yield { cid: parseCid(key.slice(prefix.length)), reference: decodeReference(value) };
    }
  }
}

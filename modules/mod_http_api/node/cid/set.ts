/** A set of CIDs that stays small: 16 bytes of each digest in one table, so that millions of blocks can be marked. */
import { hash } from "node:crypto";
import type { CID } from "multiformats/cid";

const keyWords = 4;
const wholeDigest = 32;

/**
 * Members are told apart by codec and 128 bits of a cryptographic digest; shorter or identity digests are hashed for
 * it. Twin forms (version 0 and 1 of one dag-pb block) are one member. Nothing is ever taken out.
 */
export class CidSet {
  #table = new Uint32Array(1024 * keyWords);
  #size = 0;
  readonly #key = new Uint32Array(keyWords);
  readonly #keyBytes = new Uint8Array(this.#key.buffer);

  get size(): number {
    return this.#size;
  }

  has(cid: CID): boolean {
    this.#read(cid);
    const at = this.#find(this.#table);
    return this.#used(this.#table, at);
  }

  /** True when it was not in the set before. */
  add(cid: CID): boolean {
    this.#read(cid);
    const at = this.#find(this.#table);
    if (this.#used(this.#table, at)) return false;
    this.#table.set(this.#key, at);
    this.#size += 1;
    if (this.#size * keyWords * 3 > this.#table.length * 2) this.#grow();
    return true;
  }

  #read(cid: CID): void {
    const { code, digest } = cid.multihash;
    const trusted = code !== 0 && digest.length >= wholeDigest;
    const source = trusted ? digest : hash("sha256", cid.multihash.bytes, "buffer");
    this.#keyBytes.set(source.subarray(0, keyWords * 4));
    this.#key[0] = (this.#key[0] as number) ^ Math.imul(cid.code, 0x9e3779b1);
    // All zero marks a free place.
    if (this.#key.every((word) => word === 0)) this.#key[0] = 1;
  }

  #used(table: Uint32Array, at: number): boolean {
    return table[at] !== 0 || table[at + 1] !== 0 || table[at + 2] !== 0 || table[at + 3] !== 0;
  }

  /** Where the key is, or would be put. */
  #find(table: Uint32Array): number {
    const key = this.#key;
    const places = table.length / keyWords;
    let place = ((key[0] as number) ^ (key[1] as number)) >>> 0;
    for (;;) {
      const at = (place & (places - 1)) * keyWords;
      if (!this.#used(table, at)) return at;
      if (table[at] === key[0] && table[at + 1] === key[1] && table[at + 2] === key[2] && table[at + 3] === key[3]) {
        return at;
      }
      place += 1;
    }
  }

  #grow(): void {
    const old = this.#table;
    const table = new Uint32Array(old.length * 2);
    for (let at = 0; at < old.length; at += keyWords) {
      if (!this.#used(old, at)) continue;
      this.#key.set(old.subarray(at, at + keyWords));
      table.set(this.#key, this.#find(table));
    }
    this.#table = table;
  }
}

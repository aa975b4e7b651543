/**
 * Compact sets of CIDs. A set stores 16 bytes of each digest in one table, so that garbage
 * collection can mark millions of blocks.
 */
import { hash } from "node:crypto";
import type { CID } from "multiformats/cid";

const keyWords = 4;
const wholeDigest = 32;
const MIN_SLOTS = 1024;

/** A hash table with open addressing. Each key is followed by `ownWords` words of data. */
class Table {
  readonly #stride: number;
  readonly #kindOf: (cid: CID) => number;
  #words: Uint32Array;
  #size = 0;
  readonly #key = new Uint32Array(keyWords);
  readonly #keyBytes = new Uint8Array(this.#key.buffer);

  /** `kindOf` returns a number that distinguishes CIDs with the same multihash. */
  constructor(ownWords: number, kindOf: (cid: CID) => number) {
    this.#stride = keyWords + ownWords;
    this.#kindOf = kindOf;
    this.#words = new Uint32Array(MIN_SLOTS * this.#stride);
  }

  get size(): number {
    return this.#size;
  }

  /** Returns the offset of the data words of a CID; undefined if the table does not contain it. */
  find(cid: CID): number | undefined {
    this.#read(cid);
    const at = this.#slot(this.#words);
    return isUsed(this.#words, at) ? at + keyWords : undefined;
  }

  /** Adds the CID of the last call of `find`, which must have found nothing. */
  add(own?: number): void {
    if ((this.#size + 1) * this.#stride * 3 > this.#words.length * 2) this.#grow();
    const at = this.#slot(this.#words);
    this.#words.set(this.#key, at);
    this.#size += 1;
    if (own !== undefined) this.#words[at + keyWords] = own;
  }

  word(at: number): number {
    return this.#words[at] as number;
  }

  setWord(at: number, word: number): void {
    this.#words[at] = word;
  }

  #read(cid: CID): void {
    const { code, digest } = cid.multihash;
    const trusted = code !== 0 && digest.length >= wholeDigest;
    const source = trusted ? digest : hash("sha256", cid.multihash.bytes, "buffer");
    this.#keyBytes.set(source.subarray(0, keyWords * 4));
    this.#key[0] = (this.#key[0] as number) ^ Math.imul(this.#kindOf(cid), 0x9e3779b1);
    // The hash function is part of the key, because anybody can link to the digest of a block under
    // another function, or to a part of the digest.
    this.#key[1] = (this.#key[1] as number) ^ Math.imul(code * 256 + digest.length, 0x85ebca6b);
    // All zeros would mark a free slot.
    if (!isUsed(this.#key, 0)) this.#key[0] = 1;
  }

  /** Returns the offset of the key, or of the free slot for it. */
  #slot(words: Uint32Array): number {
    const key = this.#key;
    const slots = words.length / this.#stride;
    for (let slot = ((key[0] as number) ^ (key[1] as number)) >>> 0; ; slot += 1) {
      const at = (slot & (slots - 1)) * this.#stride;
      if (!isUsed(words, at)) return at;
      if (words[at] === key[0] && words[at + 1] === key[1] && words[at + 2] === key[2] && words[at + 3] === key[3]) {
        return at;
      }
    }
  }

  #grow(): void {
    const old = this.#words;
    const wanted = this.#key.slice();
    const words = new Uint32Array(old.length * 2);
    for (let at = 0; at < old.length; at += this.#stride) {
      if (!isUsed(old, at)) continue;
      this.#key.set(old.subarray(at, at + keyWords));
      words.set(old.subarray(at, at + this.#stride), this.#slot(words));
    }
    this.#words = words;
    this.#key.set(wanted);
  }
}

const isUsed = (words: Uint32Array, at: number): boolean =>
  words[at] !== 0 || words[at + 1] !== 0 || words[at + 2] !== 0 || words[at + 3] !== 0;

/**
 * A set of CIDs, compared by codec and 128 bits of a cryptographic digest. Shorter digests and
 * identity digests are hashed first. Versions 0 and 1 of a dag-pb CID are the same member. Members
 * cannot be removed.
 */
export class CidSet {
  /** The codec that `hasForm` is trying; undefined outside of `hasForm`. */
  #code: number | undefined;
  readonly #table = new Table(0, ({ code }) => this.#code ?? code);
  readonly #codes = new Set<number>();

  get size(): number {
    return this.#table.size;
  }

  has(cid: CID): boolean {
    return this.#table.find(cid) !== undefined;
  }

  /** Returns true if the set did not contain the CID before. */
  add(cid: CID): boolean {
    if (this.has(cid)) return false;
    this.#table.add();
    this.#codes.add(cid.code);
    return true;
  }

  /** Whether the set contains a CID with this multihash and any codec. */
  hasForm(cid: CID): boolean {
    try {
      for (const code of this.#codes) {
        this.#code = code;
        if (this.has(cid)) return true;
      }
      return false;
    } finally {
      this.#code = undefined;
    }
  }
}

/** Maps CIDs to numbers from 0 to 2^32 - 1. Versions 0 and 1 of a dag-pb CID are different keys. */
export class CidNumberMap {
  readonly #table = new Table(1, ({ code, version }) => code * 2 + version);

  get(cid: CID): number | undefined {
    const at = this.#table.find(cid);
    return at === undefined ? undefined : this.#table.word(at);
  }

  set(cid: CID, number: number): void {
    const at = this.#table.find(cid);
    if (at === undefined) this.#table.add(number);
    else this.#table.setWord(at, number);
  }
}

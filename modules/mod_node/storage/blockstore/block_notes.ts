/**
 * Stores one number about each of many blocks, such as the size of a node in a listing, so that the
 * next caller need not read the block.
 */
import type { CID } from "multiformats/cid";

/** Number of blocks that are remembered; each takes 24 bytes. */
const SLOTS = 2 ** 16;
/** Number of adjacent slots in which a block may be. */
const WAYS = 2;
/**
 * Number of 32-bit words of a digest that are compared: half of a SHA-256 digest. Nobody can make
 * two blocks that agree in that many bits.
 */
const WORDS = 4;
const WORD_BYTES = 4;

interface Slots {
  readonly words: Uint32Array;
  /** NaN for an empty slot. */
  readonly notes: Float64Array;
}

/**
 * Notes by version and digest, for CIDs of one codec and one hash function. The version matters,
 * because a block may be stored under one version only. Each group of slots remembers the latest
 * block and the one before it.
 */
export class BlockNotes {
  /** Allocated by the first `set`, because a node that lists nothing needs no slots. */
  #slots: Slots | undefined;

  /** Returns the note of a block; undefined when the block is not remembered. */
  get({ version, multihash: { digest } }: CID): number | undefined {
    if (this.#slots === undefined || digest.length < WORDS * WORD_BYTES) return undefined;
    const first = slotOf(digest);
    for (let slot = first; slot < first + WAYS; slot += 1) {
      if (!isAt(this.#slots, slot, version, digest)) continue;
      const note = this.#slots.notes[slot] as number;
      return Number.isNaN(note) ? undefined : note;
    }
    return undefined;
  }

  set({ version, multihash: { digest } }: CID, note: number): void {
    if (digest.length < WORDS * WORD_BYTES) return;
    this.#slots ??= { words: new Uint32Array(SLOTS * WORDS), notes: new Float64Array(SLOTS).fill(Number.NaN) };
    const { words, notes } = this.#slots;
    const first = slotOf(digest);
    if (!isAt(this.#slots, first, version, digest)) {
      words.copyWithin((first + 1) * WORDS, first * WORDS, (first + 1) * WORDS);
      notes[first + 1] = notes[first] as number;
    }
    for (let word = 0; word < WORDS; word += 1) words[first * WORDS + word] = keyAt(version, digest, word);
    notes[first] = note;
  }

  clear(): void {
    this.#slots?.notes.fill(Number.NaN);
  }
}

function isAt({ words }: Slots, slot: number, version: number, digest: Uint8Array): boolean {
  for (let word = 0; word < WORDS; word += 1) {
    if (words[slot * WORDS + word] !== keyAt(version, digest, word)) return false;
  }
  return true;
}

const keyAt = (version: number, digest: Uint8Array, word: number): number =>
  word === 0 ? (wordAt(digest, 0) ^ version) >>> 0 : wordAt(digest, word);

function wordAt(digest: Uint8Array, word: number): number {
  const at = word * WORD_BYTES;
  const low = (digest[at] as number) | ((digest[at + 1] as number) << 8) | ((digest[at + 2] as number) << 16);
  return (low | ((digest[at + 3] as number) << 24)) >>> 0;
}

const slotOf = (digest: Uint8Array): number => (wordAt(digest, 1) % (SLOTS / WAYS)) * WAYS;

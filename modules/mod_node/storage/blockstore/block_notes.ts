/** One number about each of many blocks, such as what lists say of it: whoever asks again need not read the block. */
import type { CID } from "multiformats/cid";

/** Blocks that are remembered, 24 bytes for each. */
const SLOTS = 2 ** 16;
/** Slots that a block may be in, side by side. */
const WAYS = 2;
/** Of a digest: half of one of SHA-256. Nobody can make two blocks that have as much in common. */
const WORDS = 4;
const WORD_BYTES = 4;

interface Slots {
  readonly words: Uint32Array;
  /** NaN where there is none. */
  readonly notes: Float64Array;
}

/**
 * By version and digest, for CIDs of one codec and one hash function: a block that is stored under one version need not be under the
 * other. Whoever comes last is remembered, and for a while the one before it that had the same slot.
 */
export class BlockNotes {
  /** Made when the first is noted: a node that lists nothing needs none. */
  #slots: Slots | undefined;

  /** Undefined for a block that is not remembered. */
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

/**
 * Reads a segment that may be damaged. When a section does not match its head, this searches for
 * the next valid section, so a wrong byte costs only the section that it is in. A wrong length
 * costs nothing, because the CID shows where the data ends.
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import { varint } from "multiformats";
import { hashCoded } from "../../../formats/cid/hashes.ts";
import type { SegmentFile } from "./files.ts";
import { cidOf, isRecord, MAX_HEAD, readSection, type Section, varints } from "./format.ts";
import { type FoundSection, isIntact, SectionReader } from "./section_reader.ts";

/** Bytes of a segment that belong to no valid section. */
export interface Damage {
  readonly from: number;
  readonly to: number;
  readonly reason: string;
}

export type Salvaged =
  | {
      readonly found: FoundSection;
      /** Offset after the section. */
      readonly end: number;
      /**
       * Whether nothing before it is damaged. Otherwise, it may be inside a damaged block that
       * contains an archive itself, and its statements about other blocks cannot be trusted.
       */
      readonly certain: boolean;
      /** Whether its length was wrong in the file. */
      readonly isRepaired: boolean;
    }
  | { readonly damage: Damage };

/** Number of bytes that are searched together; other work of the process runs in between. */
const SEARCH_BYTES = 256 * 1024;
/** Shorter records would be found by chance. */
const MIN_RECORD = 8;
const MIN_DIGEST = 20;
/** Maximum bytes of the varint before a CID. */
const MAX_PREFIX = 5;
/** Bytes that are read first to check whether a section may begin there. */
const FIRST_LOOK = 16;
/**
 * Maximum bytes that are hashed to check possible sections, in total and for each searched byte. An
 * attacker may have made a block that looks like thousands of long sections. Sections beyond this
 * limit are set aside with the damage.
 */
const MAX_HASHED = 256 * 1024 * 1024;
const MAX_HASHED_PER_BYTE = 32;

/** Yields the valid sections between two offsets in order, and the damage between them. */
export async function* salvage(file: SegmentFile, from: number, end: number): AsyncGenerator<Salvaged> {
  let certain = true;
  for (let at = from; at < end; ) {
    const reader = new SectionReader(file, at, end, { withData: true });
    let bad: FoundSection | undefined;
    for (let found = await reader.next(); found !== undefined; found = await reader.next()) {
      if (!(await isIntact(found))) {
        bad = found;
        break;
      }
      at = reader.at;
      yield { found, end: at, certain, isRepaired: false };
    }
    if (at >= end) return;
    const search = new Search(file, at, end);
    // A section of the right length with a wrong byte ends where the next one begins. A section
    // with a wrong length may end at a valid section, too, if that one is inside its data.
    const follows = bad !== undefined && reader.at < end && (await search.isValidAt(reader.at));
    const next = follows ? reader.at : await search.next();
    const repaired = follows ? await search.withAnotherLength() : await search.withLengthUpTo(next);
    if (repaired !== undefined) {
      at = repaired.offset + repaired.length;
      yield { found: repaired, end: at, certain, isRepaired: true };
    } else {
      const reason = reader.damage ?? "its bytes do not match its CID";
      yield { damage: { from: at, to: next, reason } };
      certain = false;
      at = next;
    }
  }
}

/** Searches for valid sections after the beginning of a bad one. */
class Search {
  readonly #file: SegmentFile;
  readonly #from: number;
  readonly #end: number;
  #hashed = 0;

  constructor(file: SegmentFile, from: number, end: number) {
    this.#file = file;
    this.#from = from;
    this.#end = end;
  }

  /**
   * Returns the offset of the first valid section after the bad one; the end when there is none.
   */
  async next(): Promise<number> {
    for (let at = this.#from + 1; at < this.#end; at += SEARCH_BYTES) {
      const bytes = await this.#read(at, SEARCH_BYTES + MAX_HEAD);
      for (let offset = 0; offset < Math.min(SEARCH_BYTES, bytes.length); offset += 1) {
        const section = startsLikeSection(bytes, offset) ? plausible(bytes, offset) : undefined;
        if (
          section !== undefined &&
          this.#mayHash(section, at + offset) &&
          (await this.#isValid(section, at + offset))
        ) {
          return at + offset;
        }
      }
      await nextTurn();
    }
    return this.#end;
  }

  /** Whether a valid section begins at an offset. */
  async isValidAt(at: number): Promise<boolean> {
    const section = plausible(await this.#read(at, MAX_HEAD), 0);
    return section !== undefined && this.#isValid(section, at);
  }

  /** Returns the bad section if it is valid with all bytes up to `next` as its data. */
  async withLengthUpTo(next: number): Promise<FoundSection | undefined> {
    const head = await this.#read(this.#from, Math.min(MAX_HEAD, next - this.#from));
    for (let prefix = 1; prefix <= MAX_PREFIX; prefix += 1) {
      const found = await this.#withLength(head.subarray(prefix), next, prefix);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  /**
   * Returns the bad section if it is valid with another bit in its length, and ends at another
   * section or at the end.
   */
  async withAnotherLength(): Promise<FoundSection | undefined> {
    const head = Buffer.from(await this.#read(this.#from, MAX_HEAD));
    for (let bit = 0; bit < MAX_PREFIX * 8; bit += 1) {
      const changed = Buffer.from(head.subarray(0, MAX_PREFIX));
      const at = bit >> 3;
      changed[at] = (changed[at] as number) ^ (1 << (bit & 7));
      const prefix = changed.findIndex((byte) => byte < 0x80) + 1;
      if (prefix <= at || (prefix > 1 && changed[prefix - 1] === 0)) continue;
      const end = this.#from + prefix + varint.decode(changed)[0];
      if (end > this.#end || !(await this.#mayEndAt(end))) continue;
      const found = await this.#withLength(head.subarray(prefix), end, prefix);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  async #mayEndAt(at: number): Promise<boolean> {
    return at === this.#end || startsLikeSection(await this.#read(at, FIRST_LOOK), 0);
  }

  /** Returns the bad section with the data up to `end`. `rest` is its head from the CID on. */
  async #withLength(rest: Uint8Array, end: number, prefix: number): Promise<FoundSection | undefined> {
    const section = plausible(Buffer.concat([varints([end - this.#from - prefix]), rest]), 0);
    if (section === undefined) return undefined;
    const offset = end - section.length;
    const data = await this.#read(offset, section.length);
    const found = { ...section, headLength: offset - this.#from, offset, data };
    return (await isIntact(found)) ? found : undefined;
  }

  #mayHash({ length }: Section, at: number): boolean {
    if (this.#hashed + length > MAX_HASHED + MAX_HASHED_PER_BYTE * (at - this.#from)) return false;
    this.#hashed += length;
    return true;
  }

  async #isValid(section: Section, at: number): Promise<boolean> {
    const offset = at + section.headLength;
    if (offset + section.length > this.#end) return false;
    return isIntact({ ...section, offset, data: await this.#read(offset, section.length) });
  }

  async #read(at: number, length: number): Promise<Uint8Array> {
    const bytes = new Uint8Array(Buffer.allocUnsafeSlow(Math.max(0, Math.min(length, this.#end - at))).buffer);
    return bytes.subarray(0, await this.#file.read([bytes], at));
  }
}

/** A first check that most offsets fail: a varint, followed by the first bytes of a CID. */
function startsLikeSection(bytes: Uint8Array, at: number): boolean {
  let cid = at;
  while ((bytes[cid] as number) >= 0x80) {
    cid += 1;
    if (cid - at >= MAX_PREFIX) return false;
  }
  cid += 1;
  const first = bytes[cid];
  return first === 0x01 || (first === 0x12 && bytes[cid + 1] === 0x20);
}

/** Returns the head of a section whose bytes can be checked. */
function plausible(bytes: Uint8Array, at: number): Section | undefined {
  try {
    const section = readSection(bytes, at);
    return section !== undefined && canBeChecked(section) ? section : undefined;
  } catch {
    return undefined;
  }
}

function canBeChecked(section: Section): boolean {
  const { form, multihash, length } = section;
  // Records repeat the content of their CIDs.
  if (isRecord(section)) return length >= MIN_RECORD;
  const { code, digest } = cidOf(form, multihash).multihash;
  return digest.length >= MIN_DIGEST && hashCoded(code)?.digest !== undefined;
}

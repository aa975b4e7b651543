/** Reads a segment section by section. */
import { decode as decodeDigest } from "multiformats/hashes/digest";
import { hashCoded, identity, matches } from "../../../formats/cid/hashes.ts";
import { NodeError } from "../../../util/errors.ts";
import type { SegmentFile } from "./files.ts";
import { cidOf, isRecord, MAX_HEAD, readRecord, readSection, type Section } from "./format.ts";

export interface FoundSection extends Section {
  /** Offset of its data in the file. */
  readonly offset: number;
  /** Its data; empty unless it was asked for. */
  readonly data: Uint8Array;
}

const WINDOW_BYTES = 1024 * 1024;
/** Sections longer than this are skipped with a seek when their data is not wanted. */
const MIN_SKIPPED = 64 * 1024;
/** From this length on it is checked that another section follows before one is read: the length may be wrong. */
const MIN_CHECKED = 16 * 1024 * 1024;

export class SectionReader {
  readonly #file: Pick<SegmentFile, "read">;
  readonly #end: number;
  readonly #withData: boolean;
  #window: Uint8Array = new Uint8Array(0);
  /** Offset of the window in the file. */
  #start = 0;
  /** Offset of the next section. */
  #at: number;
  #lastLength = 0;
  /** Why the last `next` found nothing before the end. */
  damage: string | undefined;

  /** Reads from one offset to another. */
  constructor(file: Pick<SegmentFile, "read">, from: number, end: number, options: { readonly withData: boolean }) {
    this.#file = file;
    this.#at = from;
    this.#end = end;
    this.#withData = options.withData;
  }

  /** The end of the last section that was found. */
  get at(): number {
    return this.#at;
  }

  /** The next section; undefined at the end, and where what follows is not a whole section: see `damage`. */
  async next(): Promise<FoundSection | undefined> {
    if (this.#at >= this.#end) return undefined;
    try {
      const section = await this.#read();
      if (section === undefined || this.#at + section.headLength + section.length > this.#end) {
        this.damage = "the last section is not complete";
        return undefined;
      }
      const start = this.#at + section.headLength - this.#start;
      const data = this.#withData ? this.#window.subarray(start, start + section.length) : this.#window.subarray(0, 0);
      const offset = this.#at + section.headLength;
      this.#at = offset + section.length;
      this.#lastLength = section.length;
      return { ...section, offset, data };
    } catch (error) {
      if (isSystemError(error) || NodeError.is(error)) throw error;
      this.damage = (error as Error).message;
      return undefined;
    }
  }

  /** The current section, read into the window as far as needed. */
  async #read(): Promise<Section | undefined> {
    let section = this.#parse();
    if (section === undefined) {
      await this.#fill(!this.#withData && this.#lastLength > MIN_SKIPPED ? 256 : WINDOW_BYTES);
      section = this.#parse();
    }
    if (section === undefined) {
      await this.#fill(MAX_HEAD);
      section = this.#parse();
    }
    if (section === undefined || !this.#withData) return section;
    const needed = section.headLength + section.length;
    if (this.#at - this.#start + needed <= this.#window.length) return section;
    if (this.#at + needed > this.#end) return section;
    if (needed >= MIN_CHECKED) await this.#requireNext(this.#at + needed);
    await this.#fill(Math.max(needed, WINDOW_BYTES));
    return this.#parse();
  }

  #parse(): Section | undefined {
    const at = this.#at - this.#start;
    if (at < 0 || at >= this.#window.length) return undefined;
    return readSection(this.#window, at);
  }

  /** @throws Error when neither a section begins at that offset nor the file ends there */
  async #requireNext(at: number): Promise<void> {
    const head = new Uint8Array(Math.min(MAX_HEAD, this.#end - at));
    const read = await this.#file.read([head], at);
    if (head.length > 0) readSection(head.subarray(0, read), 0);
  }

  async #fill(size: number): Promise<void> {
    // A new window each time: arrays that were handed out must not change.
    const window = new Uint8Array(Buffer.allocUnsafeSlow(Math.min(size, this.#end - this.#at)).buffer);
    const read = await this.#file.read([window], this.#at);
    this.#window = window.subarray(0, read);
    this.#start = this.#at;
  }
}

const isSystemError = (error: unknown): error is NodeJS.ErrnoException =>
  error instanceof Error && typeof (error as NodeJS.ErrnoException).code === "string" && "syscall" in error;

/**
 * Whether the data of a section fits its CID, and what a record says can be read. A hash that is known and cannot be
 * computed here is trusted.
 */
export async function isIntact(section: FoundSection): Promise<boolean> {
  const { form, multihash, data } = section;
  if (isRecord(section)) return Buffer.compare(decodeDigest(multihash).digest, data) === 0 && isReadable(section);
  const cid = cidOf(form, multihash);
  const hash = hashCoded(cid.multihash.code);
  // Another spelling of the identity code: it is neither a record nor a block that is ever stored.
  if (hash === undefined || hash === identity) return false;
  return hash.digest === undefined ? cid.multihash.digest.length === hash.length : matches(cid, data);
}

function isReadable(record: FoundSection): boolean {
  try {
    readRecord(record);
    return true;
  } catch {
    return false;
  }
}

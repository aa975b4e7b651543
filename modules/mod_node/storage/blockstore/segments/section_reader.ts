/** Reads a segment section by section. */
import { decode as decodeDigest } from "multiformats/hashes/digest";
import { hashCoded, identity, matches } from "../../../formats/cid/hashes.ts";
import { NodeError } from "../../../util/errors.ts";
import type { SegmentFile } from "./files.ts";
import { cidOf, isRecord, MAX_HEAD, readRecord, readSection, type Section } from "./format.ts";

export interface FoundSection extends Section {
  /** Offset of the data in the file. */
  readonly offset: number;
  /** The data of the section; empty unless it was requested. */
  readonly data: Uint8Array;
}

const WINDOW_BYTES = 1024 * 1024;
/** Sections longer than this are skipped with a seek when their data is not wanted. */
const MIN_SKIPPED = 64 * 1024;
/**
 * From this length on, the reader checks that another section follows before it reads the data,
 * because the length may be wrong.
 */
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
  /** Why the last `next` returned undefined before the end. */
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

  /**
   * Returns the next section. Returns undefined at the end, and where no whole section follows;
   * `damage` then says why.
   */
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

  /** Returns the current section, and reads it into the window as far as needed. */
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

  /** @throws Error unless a section begins at this offset or the file ends there */
  async #requireNext(at: number): Promise<void> {
    const head = new Uint8Array(Math.min(MAX_HEAD, this.#end - at));
    const read = await this.#file.read([head], at);
    if (head.length > 0) readSection(head.subarray(0, read), 0);
  }

  async #fill(size: number): Promise<void> {
    // Each window is a new array, because callers may retain views of the previous one.
    const window = new Uint8Array(Buffer.allocUnsafeSlow(Math.min(size, this.#end - this.#at)).buffer);
    const read = await this.#file.read([window], this.#at);
    this.#window = window.subarray(0, read);
    this.#start = this.#at;
  }
}

const isSystemError = (error: unknown): error is NodeJS.ErrnoException =>
  error instanceof Error && typeof (error as NodeJS.ErrnoException).code === "string" && "syscall" in error;

/**
 * Whether the data of a section matches its CID, and a record can be decoded. A known hash that
 * cannot be computed here is trusted.
 */
export async function isIntact(section: FoundSection): Promise<boolean> {
  const { form, multihash, data } = section;
  if (isRecord(section)) return Buffer.compare(decodeDigest(multihash).digest, data) === 0 && isReadable(section);
  const cid = cidOf(form, multihash);
  const hash = hashCoded(cid.multihash.code);
  // The identity code with another encoding: the section is neither a record nor a block that is
  // ever stored.
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

/** Reads the sorted entries of a run, some kilobytes of the file at a time. */
import type { FileHandle } from "node:fs/promises";

/** A part of the file, or what the file had no room for. */
export type Run = { readonly from: number; readonly to: number } | { readonly held: Buffer };

export interface Record {
  readonly name: string;
  /** Which run it is of. */
  readonly run: number;
}

const READ_BYTES = 64 * 1024;
/** Of the lengths before name and value. */
const HEAD = 8;

export class RunReader implements Record {
  readonly run: number;
  /** Of the entry that was read last; a value is only lent. */
  name = "";
  value: Uint8Array = new Uint8Array();
  readonly #handle: FileHandle | undefined;
  #bytes: Buffer = Buffer.alloc(0);
  #at = 0;
  /** What of the file is not read yet. */
  #from = 0;
  #to = 0;

  constructor(run: Run, number: number, handle: FileHandle | undefined) {
    this.run = number;
    this.#handle = handle;
    if ("held" in run) this.#bytes = run.held;
    else [this.#from, this.#to] = [run.from, run.to];
  }

  /** False at the end. */
  next(): boolean | Promise<boolean> {
    const size = this.#sizeOfNext();
    if (this.#at + size > this.#bytes.length) return this.#from < this.#to ? this.#refilled(size) : false;
    const from = this.#at + HEAD;
    const middle = from + this.#bytes.readUInt32LE(this.#at);
    this.#at += size;
    this.name = this.#bytes.toString("utf8", from, middle);
    this.value = this.#bytes.subarray(middle, this.#at);
    return true;
  }

  /** At least that of the lengths, where these are not read yet. */
  #sizeOfNext(): number {
    const at = this.#at;
    if (at + HEAD > this.#bytes.length) return HEAD;
    return HEAD + this.#bytes.readUInt32LE(at) + this.#bytes.readUInt32LE(at + 4);
  }

  async #refilled(size: number): Promise<boolean> {
    const rest = this.#bytes.subarray(this.#at);
    const length = Math.min(this.#to - this.#from, Math.max(READ_BYTES, size));
    const bytes = Buffer.allocUnsafeSlow(rest.length + length);
    rest.copy(bytes);
    for (let at = rest.length; at < bytes.length; ) {
      const { bytesRead } = await (this.#handle as FileHandle).read(bytes, at, bytes.length - at, this.#from);
      if (bytesRead === 0) throw new Error("a file of sorted entries has become shorter");
      at += bytesRead;
      this.#from += bytesRead;
    }
    this.#bytes = bytes;
    this.#at = 0;
    return this.next();
  }
}

/** Reads the sorted entries of a run, a few kilobytes of the file at a time. */
import type { FileHandle } from "node:fs/promises";

/** A range of the file, or the bytes in memory when the disk had no room. */
export type Run = { readonly from: number; readonly to: number } | { readonly bytes: Buffer };

export interface Record {
  readonly name: string;
  /** Number of the run with this entry. */
  readonly run: number;
}

const READ_BYTES = 64 * 1024;
/** Bytes of the two lengths before name and value. */
const HEAD = 8;

export class RunReader implements Record {
  readonly run: number;
  /** Name and value of the entry that was read last. The value is valid until the next read. */
  name = "";
  value: Uint8Array = new Uint8Array();
  readonly #handle: FileHandle | undefined;
  #bytes: Buffer = Buffer.alloc(0);
  #at = 0;
  /** The range of the file that is not read yet. */
  #from = 0;
  #to = 0;

  constructor(run: Run, number: number, handle: FileHandle | undefined) {
    this.run = number;
    this.#handle = handle;
    if ("bytes" in run) this.#bytes = run.bytes;
    else {
      this.#from = run.from;
      this.#to = run.to;
    }
  }

  /** Reads the next entry; false at the end. */
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

  /** Returns the size of the next entry, or the size of its lengths when these are not read yet. */
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

/**
 * The audit file: one line of JSON for each change, in the data folder, readable by its owner only.
 */
import { open, rename } from "node:fs/promises";
import { dirname } from "node:path";
import { reasonOf } from "../util/errors.ts";
import { makePrivateFolder } from "../util/private_folder.ts";

/**
 * Maximum size of the file in bytes. A larger one is renamed to `audit.jsonl.1` and replaces the
 * earlier one.
 */
const MAX_FILE_BYTES = 4 * 1024 * 1024;
/** Maximum number of lines that wait for a slow disk; further lines are lost. */
const MAX_WAITING_LINES = 1000;
/** Maximum number of milliseconds that `written` waits for the disk. */
const MAX_END_TIME = 1000;

/**
 * Appends lines in order, in the background. A failing disk blocks nobody: `failed` is called once,
 * and again only after a line could be written. The file is open only while something is written.
 */
export class AuditFile {
  readonly #path: string;
  readonly #failed: (reason: string) => void;
  readonly #maxBytes: number;
  #waiting: string[] = [];
  #work: Promise<void> | undefined;
  #isFailing = false;

  constructor(path: string, failed: (reason: string) => void, maxBytes = MAX_FILE_BYTES) {
    this.#path = path;
    this.#failed = failed;
    this.#maxBytes = maxBytes;
  }

  /** Whether the latest lines could not be written. */
  get isFailing(): boolean {
    return this.#isFailing;
  }

  append(record: object): void {
    if (this.#waiting.length >= MAX_WAITING_LINES) {
      this.#fail("the disk does not keep up");
      return;
    }
    this.#waiting.push(`${JSON.stringify(record)}\n`);
    this.#work ??= this.#writeAll();
  }

  /** Waits until everything that was appended is written, up to MAX_END_TIME. */
  async written(): Promise<void> {
    const { promise: late, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, MAX_END_TIME);
    await Promise.race([this.#work, late]);
    clearTimeout(timer);
  }

  async #writeAll(): Promise<void> {
    while (this.#waiting.length > 0) {
      const lines = this.#waiting.splice(0).join("");
      try {
        await this.#write(lines);
        this.#isFailing = false;
      } catch (error) {
        this.#fail(reasonOf(error));
      }
    }
    this.#work = undefined;
  }

  async #write(lines: string): Promise<void> {
    makePrivateFolder(dirname(this.#path));
    let file = await open(this.#path, "a", 0o600);
    try {
      const { size } = await file.stat();
      if (size > 0 && size + Buffer.byteLength(lines) > this.#maxBytes) {
        await file.close();
        await rename(this.#path, `${this.#path}.1`);
        file = await open(this.#path, "a", 0o600);
      }
      await file.appendFile(lines);
    } finally {
      await file.close();
    }
  }

  #fail(reason: string): void {
    if (this.#isFailing) return;
    this.#isFailing = true;
    this.#failed(reason);
  }
}

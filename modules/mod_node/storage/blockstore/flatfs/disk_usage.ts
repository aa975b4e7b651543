/**
 * The disk usage of a flatfs. go-ipfs stores it in a file, so that it need not be computed again.
 */
import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { mapConcurrent } from "../../../util/async/map_concurrent.ts";
import { writeAtomically } from "../../repo/atomic_file.ts";
import { usageFile } from "./layout.ts";

/**
 * Maximum number of files in a folder whose size is read; the others are assumed to have the mean
 * size.
 */
const MAX_SAMPLE = 2000;
const MAX_CONCURRENT = 16;
/** Milliseconds after a change until the file is updated. */
const WRITE_DELAY_MS = 2000;
const mode = 0o644;

interface UsageFile {
  readonly diskUsage: number;
  /** How exact the first count was. */
  readonly accuracy: string;
}

export class DiskUsage {
  readonly #path: string;
  readonly #accuracy: string;
  #bytes: number;
  #dirty = false;
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> = Promise.resolve();

  private constructor(path: string, { diskUsage, accuracy }: UsageFile) {
    this.#path = path;
    this.#bytes = diskUsage;
    this.#accuracy = accuracy;
  }

  /** Reads the usage from its file; without one, computes it from the files. */
  static async open(folder: string): Promise<DiskUsage> {
    const path = join(folder, usageFile);
    const content = await readUsage(path);
    if (content !== undefined) return new DiskUsage(path, content);
    const { bytes, exact } = await folderSize(folder);
    const usage = new DiskUsage(path, {
      diskUsage: bytes,
      accuracy: exact ? "initial-exact" : "initial-approximate",
    });
    await usage.#write();
    return usage;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Adds bytes of written files, or subtracts bytes of removed ones. */
  add(bytes: number): void {
    this.#bytes += bytes;
    this.#dirty = true;
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      this.#write().catch(() => {});
    }, WRITE_DELAY_MS).unref();
  }

  async close(): Promise<void> {
    clearTimeout(this.#timer);
    // Errors do not matter: a missing file leads to a new count, and an old one is only slightly
    // wrong.
    if (this.#dirty) this.#write().catch(() => {});
    await this.#writing;
  }

  #write(): Promise<void> {
    this.#dirty = false;
    const content: UsageFile = { diskUsage: this.#bytes, accuracy: this.#accuracy };
    const writing = this.#writing.then(() => writeAtomically(this.#path, `${JSON.stringify(content)}\n`, mode));
    this.#writing = writing.catch(() => {});
    return writing;
  }
}

async function readUsage(path: string): Promise<UsageFile | undefined> {
  try {
    const { diskUsage, accuracy } = JSON.parse(await readFile(path, "utf8")) as Partial<UsageFile>;
    const known = Number.isSafeInteger(diskUsage) && (diskUsage as number) > 0 && typeof accuracy === "string";
    return known ? { diskUsage: diskUsage as number, accuracy: accuracy as string } : undefined;
  } catch {
    return undefined;
  }
}

/** Computes the size of a folder, including its subfolders. */
async function folderSize(folder: string): Promise<{ readonly bytes: number; readonly exact: boolean }> {
  const names = await readdir(folder);
  // Names are hashes: the first ones are as good a sample as any.
  const looked = names.slice(0, MAX_SAMPLE);
  let bytes = 0;
  let exact = names.length === looked.length;
  const sizeOf = async (name: string) => {
    const path = join(folder, name);
    const found = await stat(path).catch(() => undefined);
    if (found?.isDirectory()) return folderSize(path);
    return { bytes: found?.size ?? 0, exact: true };
  };
  for await (const each of mapConcurrent(looked, MAX_CONCURRENT, sizeOf)) {
    bytes += each.bytes;
    exact &&= each.exact;
  }
  const rest = looked.length === 0 ? 0 : Math.floor((bytes / looked.length) * (names.length - looked.length));
  return { bytes: bytes + rest + (await stat(folder)).size, exact };
}

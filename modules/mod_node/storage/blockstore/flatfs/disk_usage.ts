/** The bytes that the files take, which go-ipfs keeps in a file so that they need not be added up again. */
import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { mapConcurrent } from "../../../util/async/map_concurrent.ts";
import { writeAtomically } from "../../repo/atomic_file.ts";
import { usageFile } from "./layout.ts";

/** Files of a folder that are looked at; the others are taken to have their mean size. */
const MAX_SAMPLE = 2000;
const MAX_CONCURRENT = 16;
/** The file follows a change after this time. */
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

  /** Reads the count from its file; without one the files are counted. */
  static async open(folder: string): Promise<DiskUsage> {
    const path = join(folder, usageFile);
    const kept = await readKept(path);
    if (kept !== undefined) return new DiskUsage(path, kept);
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

  /** Adds bytes that came or, when negative, went. */
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
    // A missing file is counted anew, and an old one is only slightly wrong.
    if (this.#dirty) this.#write().catch(() => {});
    await this.#writing;
  }

  #write(): Promise<void> {
    this.#dirty = false;
    const kept: UsageFile = { diskUsage: this.#bytes, accuracy: this.#accuracy };
    const writing = this.#writing.then(() => writeAtomically(this.#path, `${JSON.stringify(kept)}\n`, mode));
    this.#writing = writing.catch(() => {});
    return writing;
  }
}

async function readKept(path: string): Promise<UsageFile | undefined> {
  try {
    const { diskUsage, accuracy } = JSON.parse(await readFile(path, "utf8")) as Partial<UsageFile>;
    const known = Number.isSafeInteger(diskUsage) && (diskUsage as number) > 0 && typeof accuracy === "string";
    return known ? { diskUsage: diskUsage as number, accuracy: accuracy as string } : undefined;
  } catch {
    return undefined;
  }
}

/** Folders count as well. */
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

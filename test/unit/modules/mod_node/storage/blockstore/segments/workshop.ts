/** Folders, crashes and faults for the tests of the segment store. */
import { mkdtempSync, rmSync } from "node:fs";
import { cp, readdir, rm, stat, truncate } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { diskFs, type SegmentFile, type SegmentFs } from "#node/storage/blockstore/segments/files.ts";
import { SegmentIndex } from "#node/storage/blockstore/segments/segment_index.ts";

const home = mkdtempSync(join(tmpdir(), "modhost-segments-"));
process.once("exit", () => rmSync(home, { recursive: true, force: true }));
let folders = 0;

/**
 * Returns the path of a folder that does not exist yet. Its name has a dot, which must not matter.
 */
export const folder = (): string => join(home, `repo.${++folders}`);

/**
 * Copies the files as they would be found if the process ended now, optionally without the index.
 */
export async function copyOf(from: string, { index = true } = {}): Promise<string> {
  const to = folder();
  await cp(from, to, { recursive: true, preserveTimestamps: true });
  if (!index) await rm(join(to, "index"), { recursive: true });
  return to;
}

/** Returns the whole content of an index. */
export async function dump(at: string): Promise<unknown> {
  const index = await SegmentIndex.open(join(at, "index"), (reason) => {
    throw new Error(reason);
  });
  const loaded = index.load();
  const entries = index.page(undefined, 1_000_000).map(({ multihash, stored }) => ({
    multihash: Buffer.from(multihash).toString("hex"),
    forms: stored.forms,
    target: stored.location && { ...stored.location, bytes: undefined },
  }));
  await index.close();
  return { state: loaded?.state, usage: [...(loaded?.usage ?? [])].sort(([a], [b]) => a - b), entries };
}

export type Operation = "list" | "open" | "create" | "remove" | "syncFolder" | "read" | "write" | "sync" | "truncate";

/**
 * The real file system with a function that runs before each operation and may throw. With
 * `through`, it can write through, which is a write and a flush; without, it cannot, as on some
 * systems.
 */
export function watched(before: (operation: Operation, path: string) => unknown, { through = false } = {}): SegmentFs {
  const watchedFile = (file: SegmentFile, path: string): SegmentFile => ({
    async read(into, at) {
      await before("read", path);
      return file.read(into, at);
    },
    async write(from, at) {
      await before("write", path);
      return file.write(from, at);
    },
    ...(through && {
      async writeThrough(from: readonly Uint8Array[], at: number) {
        await before("write", path);
        const written = await file.write(from, at);
        await before("sync", path);
        await file.sync();
        return written;
      },
    }),
    async sync() {
      await before("sync", path);
      return file.sync();
    },
    async truncate(length) {
      await before("truncate", path);
      return file.truncate(length);
    },
    size: () => file.size(),
    close: () => file.close(),
  });
  return {
    async list(at) {
      await before("list", at);
      return diskFs.list(at);
    },
    async open(path, create) {
      await before(create ? "create" : "open", path);
      return watchedFile(await diskFs.open(path, create), path);
    },
    async remove(path) {
      await before("remove", path);
      return diskFs.remove(path);
    },
    size: (path) => diskFs.size(path),
    async syncFolder(at) {
      await before("syncFolder", at);
      return diskFs.syncFolder(at);
    },
  };
}

export const systemError = (code: string): Error =>
  Object.assign(new Error(`${code}: it was put there by the test`), { code, syscall: "test" });

/** A disk that accepts a limited number of bytes. The write that reaches the limit is truncated. */
export class SmallDisk {
  left: number;

  constructor(left: number) {
    this.left = left;
  }

  readonly fs: SegmentFs = {
    ...diskFs,
    open: async (path, create) => {
      const file = await diskFs.open(path, create);
      return {
        read: (into, at) => file.read(into, at),
        write: async (from, at) => {
          const bytes = Buffer.concat(from).subarray(0, this.left);
          if (bytes.length === 0) throw systemError("ENOSPC");
          this.left -= bytes.length;
          return file.write([bytes], at);
        },
        sync: () => file.sync(),
        truncate: (length) => file.truncate(length),
        size: () => file.size(),
        close: () => file.close(),
      };
    },
  };
}

/** Tracks which data of each file is durable, and makes copies with nothing else. */
export class PowerCut {
  readonly #synced = new Map<string, number>();
  readonly #at: string;
  readonly #before: (operation: Operation, path: string) => unknown;
  readonly #through: boolean;

  /** `through` is the option of `watched`. */
  constructor(at: string, before: (operation: Operation, path: string) => unknown, { through = false } = {}) {
    this.#at = at;
    this.#before = before;
    this.#through = through;
  }

  readonly fs: SegmentFs = {
    list: (at) => diskFs.list(at),
    size: (path) => diskFs.size(path),
    open: async (path, create) => {
      const through = this.#through;
      const file = await watched((operation) => this.#before(operation, path), { through }).open(path, create);
      if (!create) this.#synced.set(path, await file.size());
      const { writeThrough } = file;
      return {
        ...file,
        ...(writeThrough && {
          writeThrough: async (from, at) => {
            const written = await writeThrough(from, at);
            // Data after a gap is not found.
            if (at <= (this.#synced.get(path) ?? 0)) this.#synced.set(path, at + written);
            return written;
          },
        }),
        sync: async () => {
          // Data that is written during the flush need not be durable.
          const size = await file.size();
          await file.sync();
          this.#synced.set(path, size);
        },
      };
    },
    remove: async (path) => {
      await this.#before("remove", path);
      await diskFs.remove(path);
      this.#synced.delete(path);
    },
    syncFolder: async (at) => {
      await this.#before("syncFolder", at);
      await diskFs.syncFolder(at);
    },
  };

  /** Returns the data that would be left. */
  async copy(): Promise<string> {
    const synced = new Map(this.#synced);
    const to = await copyOf(this.#at);
    for (const name of (await readdir(to)).filter((entry) => entry.endsWith(".car"))) {
      const length = synced.get(join(this.#at, name)) ?? 0;
      if ((await stat(join(to, name))).size > length) await truncate(join(to, name), length);
    }
    return to;
  }
}

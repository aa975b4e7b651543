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

/** A folder of its own that does not exist yet. A dot in its name must not matter. */
export const folder = (): string => join(home, `repo.${++folders}`);

/** What the machine would find if the process ended now; without the index if asked. */
export async function copyOf(from: string, { index = true } = {}): Promise<string> {
  const to = folder();
  await cp(from, to, { recursive: true, preserveTimestamps: true });
  if (!index) await rm(join(to, "index"), { recursive: true });
  return to;
}

/** All that an index says. */
export async function dump(at: string): Promise<unknown> {
  const index = await SegmentIndex.open(join(at, "index"), (reason) => {
    throw new Error(reason);
  });
  const loaded = index.load();
  const entries = index.page(undefined, 1_000_000).map(({ multihash, stored }) => ({
    multihash: Buffer.from(multihash).toString("hex"),
    forms: stored.forms,
    place: stored.location && { ...stored.location, bytes: undefined },
  }));
  await index.close();
  return { state: loaded?.state, usage: [...(loaded?.usage ?? [])].sort(([a], [b]) => a - b), entries };
}

export type Operation = "list" | "open" | "create" | "remove" | "syncFolder" | "read" | "write" | "sync" | "truncate";

/**
 * The real file system, with something done before each operation: it may throw. With `through`, it can write through, which is
 * a write and a flush; without, it is a system that cannot.
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

/** A disk that takes so many bytes more, and not one more: the write that meets the end is cut short. */
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

/** Knows of every file what is on the disk for sure, and makes copies that hold nothing more. */
export class PowerCut {
  readonly #synced = new Map<string, number>();
  readonly #at: string;
  readonly #before: (operation: Operation, path: string) => unknown;
  readonly #through: boolean;

  /** `through` as of `watched`. */
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
            // Behind a gap nothing is found.
            if (at <= (this.#synced.get(path) ?? 0)) this.#synced.set(path, at + written);
            return written;
          },
        }),
        sync: async () => {
          // What is written while the flush is under way need not be in it.
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

  /** What would be left. */
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

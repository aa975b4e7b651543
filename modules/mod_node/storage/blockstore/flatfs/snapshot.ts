/**
 * A snapshot of the files of a flatfs for a caller that copies them. Blocks that are deleted later
 * stay in a separate folder.
 */
import { randomBytes } from "node:crypto";
import { createReadStream } from "node:fs";
import { copyFile, link, mkdir, opendir, readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import type { SnapshotFile, StoreSnapshot } from "../store.ts";
import { fileOf, folderMode, nameIn, readmeFile, type ShardFunc, shardingFile, temporaryFolder } from "./layout.ts";

export interface SnapshotOptions {
  /** Folder of the store. */
  readonly folder: string;
  readonly folderOf: ShardFunc;
  /** Approximate number of bytes. */
  readonly bytes: number;
  /** Called when the snapshot is released. */
  readonly ended: (snapshot: FlatfsSnapshot) => void;
}

const isMissing = (error: unknown) => (error as NodeJS.ErrnoException).code === "ENOENT";

/** A snapshot. It may include blocks that are put later. */
export class FlatfsSnapshot implements StoreSnapshot {
  readonly bytes: number;
  readonly files: AsyncIterable<SnapshotFile>;
  readonly #deps: SnapshotOptions;
  /** Folder of deleted blocks. If the process is killed, it is removed when the store is opened. */
  readonly #retained: string;
  /** Folders whose files were listed. */
  readonly #listed = new Set<string>();
  /** Names of blocks that were deleted before their folder was listed. */
  readonly #unlisted = new Set<string>();

  constructor(deps: SnapshotOptions) {
    this.#deps = deps;
    this.bytes = deps.bytes;
    this.#retained = join(deps.folder, temporaryFolder, `held-${randomBytes(6).toString("hex")}`);
    this.files = { [Symbol.asyncIterator]: () => this.#all() };
  }

  /** Retains a block. Called before the block is deleted. */
  async retain(name: string, path: string): Promise<void> {
    await mkdir(this.#retained, { recursive: true, mode: folderMode });
    const retained = join(this.#retained, fileOf(name));
    try {
      // Some file systems have no hard links.
      await link(path, retained).catch((error) => {
        if (isMissing(error) || (error as NodeJS.ErrnoException).code === "EEXIST") throw error;
        return copyFile(path, retained);
      });
    } catch (error) {
      if (isMissing(error)) return;
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    }
    if (!this.#listed.has(this.#deps.folderOf(name))) this.#unlisted.add(name);
  }

  async release(): Promise<void> {
    this.#deps.ended(this);
    await rm(this.#retained, { recursive: true, force: true });
  }

  async *#all(): AsyncGenerator<SnapshotFile> {
    const { folder } = this.#deps;
    for (const file of [readmeFile, shardingFile]) {
      const path = join(folder, file);
      yield { ...(await describe(path, path)), name: file };
    }
    for await (const entry of await opendir(folder)) {
      if (!entry.isDirectory() || entry.name.startsWith(".")) continue;
      const files = await readdir(join(folder, entry.name));
      this.#listed.add(entry.name);
      const names = files.flatMap((file) => nameIn(file) ?? []).sort();
      for (const name of names) this.#unlisted.delete(name);
      for (const name of names) yield this.#block(name);
    }
    for (const name of this.#unlisted) yield this.#block(name);
  }

  async #block(name: string): Promise<SnapshotFile> {
    const { folder, folderOf } = this.#deps;
    const own = `${folderOf(name)}/${fileOf(name)}`;
    return { ...(await describe(join(folder, own), join(this.#retained, fileOf(name)))), name: own };
  }
}

/** Describes a file, or its retained copy. */
async function describe(path: string, retained: string): Promise<Omit<SnapshotFile, "name">> {
  const found = await stat(path).catch((error) => {
    if (!isMissing(error)) throw error;
    return stat(retained);
  });
  const { size, mtimeMs, ino } = found;
  return {
    length: size,
    state: `${size} ${mtimeMs} ${ino}`,
    isGrowing: false,
    read: (from) => content(path, retained, from),
  };
}

async function* content(path: string, retained: string, start: number): AsyncGenerator<Uint8Array> {
  try {
    yield* createReadStream(path, { start });
  } catch (error) {
    // An open file stays readable, so no bytes of a missing file were yielded yet.
    if (!isMissing(error)) throw error;
    yield* createReadStream(retained, { start });
  }
}

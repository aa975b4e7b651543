/** The files of a flatfs as they are at one moment, for whoever copies them: what is deleted later is kept beside them. */
import { randomBytes } from "node:crypto";
import { createReadStream } from "node:fs";
import { copyFile, link, mkdir, opendir, readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import type { HeldFile, HeldFiles } from "../store.ts";
import { fileOf, folderMode, nameIn, readmeFile, type ShardFunc, shardingFile, temporaryFolder } from "./layout.ts";

export interface HoldDeps {
  /** Of the store. */
  readonly folder: string;
  readonly folderOf: ShardFunc;
  /** About how many bytes there are. */
  readonly bytes: number;
  /** Called when it is released. */
  readonly ended: (hold: Hold) => void;
}

const isMissing = (error: unknown) => (error as NodeJS.ErrnoException).code === "ENOENT";

/** Blocks that are put later may be among the files. */
export class Hold implements HeldFiles {
  readonly bytes: number;
  readonly files: AsyncIterable<HeldFile>;
  readonly #deps: HoldDeps;
  /** Removed when the store is opened, should the process be killed. */
  readonly #kept: string;
  /** Folders whose files were listed. */
  readonly #listed = new Set<string>();
  /** Names of blocks that were deleted before their folder was listed. */
  readonly #unlisted = new Set<string>();

  constructor(deps: HoldDeps) {
    this.#deps = deps;
    this.bytes = deps.bytes;
    this.#kept = join(deps.folder, temporaryFolder, `held-${randomBytes(6).toString("hex")}`);
    this.files = { [Symbol.asyncIterator]: () => this.#all() };
  }

  /** Called before a block is deleted. */
  async keep(name: string, path: string): Promise<void> {
    await mkdir(this.#kept, { recursive: true, mode: folderMode });
    const kept = join(this.#kept, fileOf(name));
    try {
      // Not every file system has hard links.
      await link(path, kept).catch((error) => {
        if (isMissing(error) || (error as NodeJS.ErrnoException).code === "EEXIST") throw error;
        return copyFile(path, kept);
      });
    } catch (error) {
      if (isMissing(error)) return;
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    }
    if (!this.#listed.has(this.#deps.folderOf(name))) this.#unlisted.add(name);
  }

  async release(): Promise<void> {
    this.#deps.ended(this);
    await rm(this.#kept, { recursive: true, force: true });
  }

  async *#all(): AsyncGenerator<HeldFile> {
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

  async #block(name: string): Promise<HeldFile> {
    const { folder, folderOf } = this.#deps;
    const own = `${folderOf(name)}/${fileOf(name)}`;
    return { ...(await describe(join(folder, own), join(this.#kept, fileOf(name)))), name: own };
  }
}

/** A file, or what was kept of it. */
async function describe(path: string, kept: string): Promise<Omit<HeldFile, "name">> {
  const found = await stat(path).catch((error) => {
    if (!isMissing(error)) throw error;
    return stat(kept);
  });
  const { size, mtimeMs, ino } = found;
  return {
    length: size,
    state: `${size} ${mtimeMs} ${ino}`,
    isGrowing: false,
    read: (from) => content(path, kept, from),
  };
}

async function* content(path: string, kept: string, start: number): AsyncGenerator<Uint8Array> {
  try {
    yield* createReadStream(path, { start });
  } catch (error) {
    // A file that is open stays readable, so nothing of it was given yet.
    if (!isMissing(error)) throw error;
    yield* createReadStream(kept, { start });
  }
}

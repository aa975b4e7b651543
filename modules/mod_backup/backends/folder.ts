/** A repository in a folder that only its owner can read. */
import { randomBytes } from "node:crypto";
import { link, mkdir, open, readdir, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { absent, contentOf, PRIVATE_FILE, PRIVATE_FOLDER, syncFolder } from "../disk.ts";
import { type Backend, MAX_OBJECT_BYTES } from "./backend.ts";

/** Folder of files that are being written. A killed process leaves some of them behind. */
const drafts = "drafts";

export class FolderBackend implements Backend {
  readonly name: string;
  /** Folders with new entries that may not be durable yet. */
  readonly #unsynced = new Set<string>();

  constructor(path: string) {
    this.name = path;
  }

  async read(name: string): Promise<Buffer | undefined> {
    return contentOf(join(this.name, name), MAX_OBJECT_BYTES).catch(absent);
  }

  async write(name: string, bytes: Uint8Array): Promise<void> {
    await this.#writeDraft(name, bytes, rename);
  }

  async create(name: string, bytes: Uint8Array): Promise<boolean> {
    try {
      await this.#writeDraft(name, bytes, async (draft, path) => {
        await link(draft, path);
        await rm(draft);
      });
      return true;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
      throw error;
    }
  }

  async sync(): Promise<void> {
    for (const folder of [...this.#unsynced]) {
      this.#unsynced.delete(folder);
      await syncFolder(folder);
    }
  }

  async remove(name: string): Promise<void> {
    await rm(join(this.name, name), { force: true });
  }

  async *list(prefix: string): AsyncGenerator<string> {
    const entries = (await readdir(join(this.name, prefix), { withFileTypes: true }).catch(absent)) ?? [];
    for (const entry of entries) {
      if (prefix === "" && entry.name === drafts) continue;
      if (entry.isDirectory()) yield* this.list(`${prefix}${entry.name}/`);
      else yield `${prefix}${entry.name}`;
    }
  }

  async tidy(): Promise<void> {
    await rm(join(this.name, drafts), { recursive: true, force: true });
  }

  async #writeDraft(
    name: string,
    bytes: Uint8Array,
    move: (draft: string, path: string) => Promise<void>,
  ): Promise<void> {
    const path = join(this.name, name);
    const draft = join(this.name, drafts, randomBytes(9).toString("hex"));
    await this.#makeFolder(dirname(draft));
    await this.#makeFolder(dirname(path));
    try {
      const file = await open(draft, "wx", PRIVATE_FILE);
      try {
        await file.writeFile(bytes);
        await file.sync();
      } finally {
        await file.close();
      }
      await move(draft, path);
      this.#unsynced.add(dirname(path));
    } catch (error) {
      await rm(draft, { force: true });
      throw error;
    }
  }

  async #makeFolder(path: string): Promise<void> {
    const made = await mkdir(path, { recursive: true, mode: PRIVATE_FOLDER });
    // The entries of the new folders are in the folders above them.
    for (let each = path; made !== undefined && each.length >= made.length; each = dirname(each)) {
      this.#unsynced.add(dirname(each));
    }
  }
}

/** Stores keys in files as go-ipfs does, for one process. */
import { mkdir, readdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { base32 } from "../../formats/cid/multibase.ts";
import { failure } from "../../util/errors.ts";
import { readPlainFile } from "../plain_file.ts";
import { syncFolder, writeAtomically } from "../repo/atomic_file.ts";
import type { KeyHolder } from "./key_holder.ts";

const prefix = "key_";
const fileMode = 0o400;
/** Maximum bytes of a file name on common file systems. */
const MAX_FILE_NAME = 255;

const codec = base32;
/** Returns the file name of a key. It has the alphabet that go-ipfs uses. */
export const keyFile = (name: string): string => prefix + codec.encode(Buffer.from(name)).slice(1);

/** Returns the name of the key in a file; undefined when the file is not a key. */
export function keyNameOf(file: string): string | undefined {
  if (!file.startsWith(prefix)) return undefined;
  try {
    return Buffer.from(codec.decode(codec.prefix + file.slice(prefix.length))).toString();
  } catch {
    return undefined;
  }
}

/** Refuses names that no file can have. `path` is the path that the file would have. */
export function requireKeyName(name: string, path: string): void {
  if (name === "") throw failure("KEY_NAME_INVALID", { reason: "key name must be at least one character" });
  if (keyFile(name).length > MAX_FILE_NAME)
    throw failure("KEY_NAME_INVALID", { reason: `open ${path}: file name too long` });
}

export class KeyFiles implements KeyHolder {
  readonly #folder: string;

  /** Creates a store of keys in `folder`, which may be missing. */
  constructor(folder: string) {
    this.#folder = folder;
  }

  async names(): Promise<readonly string[]> {
    const files = (await readdir(this.#folder).catch(absent)) ?? [];
    return files.map(keyNameOf).filter((name) => name !== undefined);
  }

  get(name: string): Promise<Uint8Array | undefined> {
    return readPlainFile(this.#path(name)).catch(absent);
  }

  describe(name: string): string {
    return `the key file ${this.#path(name)}`;
  }

  requireName(name: string): void {
    requireKeyName(name, this.#path(name));
  }

  async add(name: string, bytes: Uint8Array): Promise<boolean> {
    if ((await this.get(name)) !== undefined) return false;
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    await writeAtomically(this.#path(name), bytes, fileMode);
    return true;
  }

  async rename(was: string, now: string, force: boolean): Promise<"renamed" | "missing" | "taken"> {
    if ((await this.get(was)) === undefined) return "missing";
    if (!force && (await this.get(now)) !== undefined) return "taken";
    await rename(this.#path(was), this.#path(now));
    await syncFolder(this.#folder);
    return "renamed";
  }

  async remove(name: string): Promise<boolean> {
    if ((await this.get(name)) === undefined) return false;
    await rm(this.#path(name));
    await syncFolder(this.#folder);
    return true;
  }

  #path(name: string): string {
    return join(this.#folder, keyFile(name));
  }
}

/** Treats a name that no file can have as the name of a missing key. */
function absent(error: NodeJS.ErrnoException): undefined {
  if (error.code === "ENOENT" || error.code === "ENAMETOOLONG") return undefined;
  throw error;
}

/** Keys in the files of the reference's keystore, of one process. */
import { mkdir, readdir, readFile, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { base32 } from "../../formats/cid/multibase.ts";
import { NodeError } from "../../util/errors.ts";
import { syncFolder, writeAtomically } from "../repo/atomic_file.ts";
import type { KeyHolder } from "./key_holder.ts";

const prefix = "key_";
const fileMode = 0o400;
/** Bytes of a file name, on common file systems. */
const MAX_FILE_NAME = 255;

const codec = base32;
/** The name of its file, of the reference's alphabet. */
export const keyFile = (name: string): string => prefix + codec.encode(Buffer.from(name)).slice(1);

/** Undefined for a file that is not a key. */
export function keyNameOf(file: string): string | undefined {
  if (!file.startsWith(prefix)) return undefined;
  try {
    return Buffer.from(codec.decode(codec.prefix + file.slice(prefix.length))).toString();
  } catch {
    return undefined;
  }
}

/** Refuses names that no file can have; `path` is where it would be. */
export function requireKeyName(name: string, path: string): void {
  if (name === "") throw new NodeError("key name must be at least one character");
  if (keyFile(name).length > MAX_FILE_NAME) throw new NodeError(`open ${path}: file name too long`);
}

export class KeyFiles implements KeyHolder {
  readonly #folder: string;

  /** The folder need not exist. */
  constructor(folder: string) {
    this.#folder = folder;
  }

  async names(): Promise<readonly string[]> {
    const files = (await readdir(this.#folder).catch(absent)) ?? [];
    return files.map(keyNameOf).filter((name) => name !== undefined);
  }

  get(name: string): Promise<Uint8Array | undefined> {
    return readFile(this.#path(name)).catch(absent);
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

/** A name that no file can have belongs to no key. */
function absent(error: NodeJS.ErrnoException): undefined {
  if (error.code === "ENOENT" || error.code === "ENAMETOOLONG") return undefined;
  throw error;
}

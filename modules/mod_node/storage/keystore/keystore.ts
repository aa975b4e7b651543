/** The keystore: keys by name, in the files of the reference's keystore. */
import { mkdir, readdir, readFile, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { base32 } from "../../formats/cid/multibase.ts";
import { compareNames } from "../../formats/dag_pb/dag_pb.ts";
import type { PeerId } from "../../formats/peer_id.ts";
import { mapConcurrent } from "../../util/async/map_concurrent.ts";
import { NodeError } from "../../util/errors.ts";
import { syncFolder, writeAtomically } from "../repo/atomic_file.ts";
import { decodeKey, generateKey, type Key, type KeyOptions } from "./key.ts";

export interface NamedKey {
  readonly name: string;
  readonly id: PeerId;
}

/** Name of the node's own key, which is in the configuration and not in the keystore. */
export const self = "self";

const prefix = "key_";
const fileMode = 0o400;
/** Bytes of a file name, on common file systems. */
const MAX_FILE_NAME = 255;
/** Files that are read concurrently. */
const MAX_CONCURRENT = 16;

const codec = base32;
const fileOf = (name: string) => prefix + codec.encode(Buffer.from(name)).slice(1);

/** Undefined for a file that is not a key. */
function nameOf(file: string): string | undefined {
  if (!file.startsWith(prefix)) return undefined;
  try {
    return Buffer.from(codec.decode(codec.prefix + file.slice(prefix.length))).toString();
  } catch {
    return undefined;
  }
}

const unknown = (name: string) => new NodeError(`no key named ${name} was found`);

/** Changes are durable when a call resolves. Every method throws NodeError with the reference's texts. */
export class Keystore {
  readonly #folder: string;
  readonly #own: PeerId;
  /** Ends when the last change has ended. */
  #queue: Promise<unknown> = Promise.resolve();

  /** `own` is the peer id of the node. The folder need not exist. */
  constructor(folder: string, own: PeerId) {
    this.#folder = folder;
    this.#own = own;
  }

  /** The node's own key, then the others by name. */
  async list(): Promise<NamedKey[]> {
    const files = await readdir(this.#folder).catch(absent);
    const names = (files ?? []).map(nameOf).filter((name) => name !== undefined);
    const keys: NamedKey[] = [{ name: self, id: this.#own }];
    const read = async (name: string) => ({ name, id: (await this.#read(name))?.id });
    for await (const { name, id } of mapConcurrent(names.sort(compareNames), MAX_CONCURRENT, read)) {
      if (id !== undefined) keys.push({ name, id });
    }
    return keys;
  }

  /** A key by name; undefined when there is none, and for the node's own key. */
  get(name: string): Promise<Key | undefined> {
    return this.#read(name);
  }

  /** A key by name, the node's own among them. */
  async named(name: string): Promise<NamedKey> {
    return { name, id: name === self ? this.#own : (await this.#require(name)).id };
  }

  /** The bytes that `import` takes. */
  async export(name: string): Promise<Uint8Array> {
    if (name === self) throw new NodeError("cannot export key with name 'self'");
    const key = await this.#read(name);
    if (key === undefined) throw new NodeError(`key with name '${name}' doesn't exist`);
    return key.bytes;
  }

  async generate(name: string, form: KeyOptions): Promise<NamedKey> {
    if (name === self) throw new NodeError("cannot create key with name 'self'");
    await this.#requireFree(name);
    return this.#add(name, await generateKey(form));
  }

  async import(name: string, bytes: Uint8Array): Promise<NamedKey> {
    if (name === self) throw new NodeError("cannot import key with name 'self'");
    return this.#add(name, decodeKey(bytes));
  }

  /** Renames a key; with `force` an existing key of the new name is replaced. */
  async rename(was: string, now: string, force: boolean): Promise<NamedKey & { readonly overwritten: boolean }> {
    if (was === self) throw new NodeError("cannot rename key with name 'self'");
    if (now === self) throw new NodeError("cannot overwrite key with name 'self'");
    return this.#change(async () => {
      const key = await this.#require(was);
      if (was === now) return { name: now, id: key.id, overwritten: false };
      this.#requireName(now);
      const overwritten = (await this.#read(now)) !== undefined;
      if (overwritten && !force) throw new NodeError("key by that name already exists, refusing to overwrite");
      await rename(this.#path(was), this.#path(now));
      await syncFolder(this.#folder);
      return { name: now, id: key.id, overwritten };
    });
  }

  async remove(name: string): Promise<NamedKey> {
    if (name === self) throw new NodeError("cannot remove key with name 'self'");
    return this.#change(async () => {
      const { id } = await this.#require(name);
      await rm(this.#path(name));
      await syncFolder(this.#folder);
      return { name, id };
    });
  }

  #add(name: string, key: Key): Promise<NamedKey> {
    return this.#change(async () => {
      await this.#requireFree(name);
      this.#requireName(name);
      await mkdir(this.#folder, { recursive: true, mode: 0o700 });
      await writeAtomically(this.#path(name), key.bytes, fileMode);
      return { name, id: key.id };
    });
  }

  async #requireFree(name: string): Promise<void> {
    if ((await this.#read(name)) !== undefined) throw new NodeError(`key with name '${name}' already exists`);
  }

  async #require(name: string): Promise<Key> {
    const key = await this.#read(name);
    if (key === undefined) throw unknown(name);
    return key;
  }

  async #read(name: string): Promise<Key | undefined> {
    const path = this.#path(name);
    const bytes = await readFile(path).catch(absent);
    if (bytes === undefined) return undefined;
    try {
      return decodeKey(bytes);
    } catch (error) {
      throw new NodeError(`the key file ${path} cannot be read: ${(error as Error).message}`, { cause: error });
    }
  }

  /** Refuses names that no file can have. */
  #requireName(name: string): void {
    if (name === "") throw new NodeError("key name must be at least one character");
    if (fileOf(name).length > MAX_FILE_NAME) throw new NodeError(`open ${this.#path(name)}: file name too long`);
  }

  #path(name: string): string {
    return join(this.#folder, fileOf(name));
  }

  #change<T>(change: () => Promise<T>): Promise<T> {
    const done = this.#queue.then(change);
    this.#queue = done.catch(() => undefined);
    return done;
  }
}

/** A name that no file can have belongs to no key. */
function absent(error: NodeJS.ErrnoException): undefined {
  if (error.code === "ENOENT" || error.code === "ENAMETOOLONG") return undefined;
  throw error;
}

/** The keystore: private keys by name. */
import { compareNames } from "../../formats/dag_pb/dag_pb.ts";
import type { PeerId } from "../../formats/peer_id.ts";
import { mapConcurrent } from "../../util/async/map_concurrent.ts";
import { failure } from "../../util/errors.ts";
import { decodeKey, generateKey, type Key, type KeyOptions } from "./key.ts";
import type { KeyHolder } from "./key_holder.ts";

export interface NamedKey {
  readonly name: string;
  readonly id: PeerId;
}

/** Name of the node's own key. This key is in the configuration and not in the keystore. */
export const self = "self";

/** Maximum number of key files that are read at the same time. */
const MAX_CONCURRENT = 16;

const taken = (name: string) => failure("KEY_EXISTS", { reason: `key with name '${name}' already exists` });
const unknown = (name: string) => failure("KEY_NOT_FOUND", { reason: `no key named ${name} was found` });

/**
 * Manages keys by name. Changes are durable when a call resolves. Every method throws NodeError
 * with the texts of go-ipfs.
 */
export class Keystore {
  readonly #holder: KeyHolder;
  readonly #own: PeerId;
  /** Settles when the last change has ended. */
  #queue: Promise<unknown> = Promise.resolve();

  /** `own` is the peer id of the node. */
  constructor(holder: KeyHolder, own: PeerId) {
    this.#holder = holder;
    this.#own = own;
  }

  /** Lists the node's own key and then all others, sorted by name. */
  async list(): Promise<NamedKey[]> {
    const names = await this.#holder.names();
    const keys: NamedKey[] = [{ name: self, id: this.#own }];
    const read = async (name: string) => ({ name, id: (await this.#read(name))?.id });
    for await (const { name, id } of mapConcurrent(names.toSorted(compareNames), MAX_CONCURRENT, read)) {
      if (id !== undefined) keys.push({ name, id });
    }
    return keys;
  }

  /** Returns the key of a name; undefined for an unknown name and for the node's own key. */
  get(name: string): Promise<Key | undefined> {
    return this.#read(name);
  }

  /** Returns the name and the peer id of a key. Accepts the name of the node's own key. */
  async named(name: string): Promise<NamedKey> {
    return { name, id: name === self ? this.#own : (await this.#require(name)).id };
  }

  /** Returns the bytes of a key in the format that `import` accepts. */
  async export(name: string): Promise<Uint8Array> {
    if (name === self) throw failure("KEY_NAME_INVALID", { reason: "cannot export key with name 'self'" });
    const key = await this.#read(name);
    if (key === undefined) throw failure("KEY_NOT_FOUND", { reason: `key with name '${name}' doesn't exist` });
    return key.bytes;
  }

  async generate(name: string, form: KeyOptions): Promise<NamedKey> {
    if (name === self) throw failure("KEY_NAME_INVALID", { reason: "cannot create key with name 'self'" });
    await this.#requireFree(name);
    return this.#add(name, await generateKey(form));
  }

  async import(name: string, bytes: Uint8Array): Promise<NamedKey> {
    if (name === self) throw failure("KEY_NAME_INVALID", { reason: "cannot import key with name 'self'" });
    return this.#add(name, decodeKey(bytes));
  }

  /** Renames a key. With `force`, an existing key of the new name is replaced. */
  async rename(was: string, now: string, force: boolean): Promise<NamedKey & { readonly overwritten: boolean }> {
    if (was === self) throw failure("KEY_NAME_INVALID", { reason: "cannot rename key with name 'self'" });
    if (now === self) throw failure("KEY_NAME_INVALID", { reason: "cannot overwrite key with name 'self'" });
    return this.#change(async () => {
      const key = await this.#require(was);
      if (was === now) return { name: now, id: key.id, overwritten: false };
      this.#holder.requireName(now);
      const overwritten = (await this.#read(now)) !== undefined;
      const done = overwritten && !force ? "taken" : await this.#holder.rename(was, now, force);
      if (done === "taken")
        throw failure("KEY_EXISTS", { reason: "key by that name already exists, refusing to overwrite" });
      if (done === "missing") throw unknown(was);
      return { name: now, id: key.id, overwritten };
    });
  }

  async remove(name: string): Promise<NamedKey> {
    if (name === self) throw failure("KEY_NAME_INVALID", { reason: "cannot remove key with name 'self'" });
    return this.#change(async () => {
      const { id } = await this.#require(name);
      if (!(await this.#holder.remove(name))) throw unknown(name);
      return { name, id };
    });
  }

  #add(name: string, key: Key): Promise<NamedKey> {
    return this.#change(async () => {
      await this.#requireFree(name);
      this.#holder.requireName(name);
      if (!(await this.#holder.add(name, key.bytes))) throw taken(name);
      return { name, id: key.id };
    });
  }

  async #requireFree(name: string): Promise<void> {
    if ((await this.#read(name)) !== undefined) throw taken(name);
  }

  async #require(name: string): Promise<Key> {
    const key = await this.#read(name);
    if (key === undefined) throw unknown(name);
    return key;
  }

  async #read(name: string): Promise<Key | undefined> {
    const bytes = await this.#holder.get(name);
    try {
      return bytes && decodeKey(bytes);
    } catch (error) {
      throw failure(
        "KEY_UNREADABLE",
        { reason: `${this.#holder.describe(name)} cannot be read: ${(error as Error).message}` },
        error,
      );
    }
  }

  #change<T>(change: () => Promise<T>): Promise<T> {
    const done = this.#queue.then(change);
    this.#queue = done.catch(() => undefined);
    return done;
  }
}

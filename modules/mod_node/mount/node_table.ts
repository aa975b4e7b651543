/** The nodes that the kernel knows, by id. */
import { FuseError } from "./fuse/file_system.ts";
import { rootId } from "./fuse/wire.ts";

interface TableEntry<T> {
  readonly node: T;
  key: string;
  /** How often the node was returned: FUSE's lookup count. */
  lookups: number;
}

/** Nodes also have a key. The same key returns the same node as long as the kernel knows it. */
export class NodeTable<T extends { readonly id: number }> {
  readonly #byId = new Map<number, TableEntry<T>>();
  readonly #byKey = new Map<string, TableEntry<T>>();
  #last = rootId;

  /** The root has the id `rootId`, and is never forgotten. */
  constructor(root: T) {
    this.#byId.set(root.id, { node: root, key: "", lookups: Number.POSITIVE_INFINITY });
  }

  /** @throws FuseError for an unknown id */
  get(id: number): T {
    const entry = this.#byId.get(id);
    if (entry === undefined) throw new FuseError("ESTALE");
    return entry.node;
  }

  find(key: string): T | undefined {
    return this.#byKey.get(key)?.node;
  }

  /** Returns the node of a key, or makes it. Increments its lookup count. */
  register(key: string, make: (id: number) => T): T {
    let entry = this.#byKey.get(key);
    if (entry === undefined) {
      this.#last += 1;
      entry = { node: make(this.#last), key, lookups: 0 };
      this.#byId.set(entry.node.id, entry);
      this.#byKey.set(key, entry);
    }
    entry.lookups += 1;
    return entry.node;
  }

  /** Changes or removes the key of a node. Another node with that key loses it. */
  rekey(id: number, key: string | undefined): void {
    const entry = this.#byId.get(id);
    if (entry === undefined) return;
    if (this.#byKey.get(entry.key) === entry) this.#byKey.delete(entry.key);
    entry.key = key ?? "";
    if (key !== undefined) this.#byKey.set(key, entry);
  }

  forget(id: number, times: number): void {
    const entry = this.#byId.get(id);
    if (entry === undefined) return;
    entry.lookups -= times;
    if (entry.lookups > 0) return;
    this.#byId.delete(id);
    if (this.#byKey.get(entry.key) === entry) this.#byKey.delete(entry.key);
  }
}

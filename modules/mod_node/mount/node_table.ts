/** The nodes that the kernel knows, by id. */
import { FuseError } from "./fuse/file_system.ts";
import { rootId } from "./fuse/wire.ts";

interface TableEntry<T> {
  readonly node: T;
  key: string;
  /** How often it was given out: FUSE's lookup count. */
  lookups: number;
}

/** Nodes have a key as well: the same key gives the same node as long as the kernel knows it. */
export class NodeTable<T extends { readonly id: number }> {
  readonly #byId = new Map<number, TableEntry<T>>();
  readonly #byKey = new Map<string, TableEntry<T>>();
  #last = rootId;

  /** The root has the id `rootId`, and is never forgotten. */
  constructor(root: T) {
    this.#byId.set(root.id, { node: root, key: "", lookups: Number.POSITIVE_INFINITY });
  }

  /** @throws FuseError for an id that is not (or no longer) known */
  get(id: number): T {
    const held = this.#byId.get(id);
    if (held === undefined) throw new FuseError("ESTALE");
    return held.node;
  }

  find(key: string): T | undefined {
    return this.#byKey.get(key)?.node;
  }

  /** The node of a key, made when there is none; increments its lookup count. */
  register(key: string, make: (id: number) => T): T {
    let held = this.#byKey.get(key);
    if (held === undefined) {
      this.#last += 1;
      held = { node: make(this.#last), key, lookups: 0 };
      this.#byId.set(held.node.id, held);
      this.#byKey.set(key, held);
    }
    held.lookups += 1;
    return held.node;
  }

  /** Gives the node another key, or none. A node that had that key loses it. */
  rekey(id: number, key: string | undefined): void {
    const held = this.#byId.get(id);
    if (held === undefined) return;
    if (this.#byKey.get(held.key) === held) this.#byKey.delete(held.key);
    held.key = key ?? "";
    if (key !== undefined) this.#byKey.set(key, held);
  }

  forget(id: number, times: number): void {
    const held = this.#byId.get(id);
    if (held === undefined) return;
    held.lookups -= times;
    if (held.lookups > 0) return;
    this.#byId.delete(id);
    if (this.#byKey.get(held.key) === held) this.#byKey.delete(held.key);
  }
}

/**
 * Items that modules, including this one, add to the Admin API: operations, topics, shapes and
 * pages.
 */
import { ModhostError } from "../../core/index.ts";
import type { AdminItem, AdminOperation, AdminPages, AdminTopic, Module, OwnedItem } from "../../core/types.ts";
import { itemFaults } from "./item_faults.ts";

type Owned = OwnedItem<AdminItem>;

/**
 * A callable operation. It tracks its running calls, so that they can end before its module is
 * unloaded.
 */
export interface ServedOperation {
  readonly operation: AdminOperation;
  readonly owner: Module;
  readonly work: Work;
}

/** A topic with the module that provides it. */
export interface OwnedTopic {
  readonly topic: AdminTopic;
  readonly owner: Module;
}

/** The current items. While a module is being reloaded, they are those of its next instance. */
export class Items {
  readonly #items = new Map<Owned, Work>();
  readonly #followers = new Set<() => void>();
  #operations: readonly ServedOperation[] | undefined;

  /** @throws {ModhostError} ADMIN_INVALID. Its module is then not loaded */
  add(added: Owned): void {
    const faults = itemFaults(added.item);
    if (faults.length === 0) {
      for (const other of this.#items.keys()) {
        if (other.owner === added.owner || !isSameModule(other.owner, added.owner))
          faults.push(...clashes(added, other));
      }
    }
    if (faults.length > 0) throw new ModhostError("ADMIN_INVALID", { faults: faults.join("; ") });
    this.#items.set(added, new Work());
    this.#changed();
  }

  /**
   * Resolves when the calls of its operations have ended. Calls that take longer than `grace`
   * seconds are aborted.
   */
  remove(removed: Owned, grace: number): Promise<void> | undefined {
    const work = this.#items.get(removed);
    if (work === undefined) return undefined;
    this.#items.delete(removed);
    this.#changed();
    return work.end(grace);
  }

  operations(): readonly ServedOperation[] {
    this.#operations ??= this.#current().flatMap(([{ item, owner }, work]) => {
      return (item.operations ?? []).map((operation) => ({ operation, owner, work }));
    });
    return this.#operations;
  }

  topics(): ReadonlyMap<string, OwnedTopic> {
    return new Map(
      this.#current().flatMap(([{ item, owner }]) => {
        return Object.entries(item.topics ?? {}).map(([name, topic]) => [name, { topic, owner }] as const);
      }),
    );
  }

  shapes(): Readonly<Record<string, Readonly<Record<string, unknown>>>> {
    return Object.assign({}, ...this.#current().map(([{ item }]) => item.shapes ?? {}));
  }

  /** Returns the pages by the name of their module. */
  pages(): ReadonlyMap<string, AdminPages> {
    return new Map(
      this.#current().flatMap(([{ item, owner }]) =>
        item.pages === undefined ? [] : [[owner.name, item.pages] as const],
      ),
    );
  }

  /** Calls the listener when items are added or removed. */
  follow(listener: () => void): void {
    this.#followers.add(listener);
  }

  #current(): [Owned, Work][] {
    const all = [...this.#items];
    return all.filter(([{ owner }]) => {
      return all.findLast(([other]) => isSameModule(other.owner, owner))?.[0].owner === owner;
    });
  }

  #changed(): void {
    this.#operations = undefined;
    for (const listener of this.#followers) listener();
  }
}

/** The running calls of one item's operations. */
class Work {
  readonly #calls = new Set<Promise<unknown>>();
  readonly #end = new AbortController();

  async do<T>(signal: AbortSignal, call: (signal: AbortSignal) => T | Promise<T>): Promise<T> {
    const called = Promise.try(call, AbortSignal.any([signal, this.#end.signal]));
    this.#calls.add(called);
    try {
      return await called;
    } finally {
      this.#calls.delete(called);
    }
  }

  async end(grace: number): Promise<void> {
    const timer = setTimeout(() => this.#end.abort(), grace * 1000);
    await Promise.allSettled(this.#calls);
    clearTimeout(timer);
  }
}

const isSameModule = (a: Module, b: Module) => a.name === b.name && a.host === b.host;

/** Describes the operations, topics and shapes that both items define. */
function clashes({ item: own }: Owned, { item: other, owner }: Owned): string[] {
  const isTaken = `already belongs to the module ${owner.name}`;
  const operations = (own.operations ?? []).flatMap(({ name, method, path }) => {
    return (other.operations ?? []).flatMap((taken) => [
      ...(name === taken.name ? [`the operation ${name} ${isTaken}`] : []),
      ...(method === taken.method && isSamePath(path, taken.path) ? [`${method} ${path} ${isTaken}`] : []),
    ]);
  });
  const names = (kind: "topics" | "shapes") => {
    const taken = other[kind] ?? {};
    const both = Object.keys(own[kind] ?? {}).filter((name) => Object.hasOwn(taken, name));
    return both.map((name) => `the ${kind.slice(0, -1)} ${name} ${isTaken}`);
  };
  return [...operations, ...names("topics"), ...names("shapes")];
}

/** `/a/{x}` and `/a/{y}` match the same paths. */
const isSamePath = (a: string, b: string) => patternOf(a) === patternOf(b);
const patternOf = (path: string) => path.replace(/\{\w+\}/g, "{}");

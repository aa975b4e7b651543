/** What modules add to the Admin API, this one too: operations, topics, shapes and pages. */
import { ModhostError } from "../../core/index.ts";
import type { AdminItem, AdminOperation, AdminPages, AdminTopic, Module, OwnedItem } from "../../core/types.ts";
import { itemFaults } from "./item_faults.ts";

type Owned = OwnedItem<AdminItem>;

/** An operation as it is called: work under way is known, so that it can end before its module goes. */
export interface ServedOperation {
  readonly operation: AdminOperation;
  readonly owner: Module;
  readonly work: Work;
}

/** A topic, and the module that it is of. */
export interface OwnedTopic {
  readonly topic: AdminTopic;
  readonly owner: Module;
}

/** Those that are there now; of a module that is being reloaded, those of the next instance. */
export class Items {
  readonly #items = new Map<Owned, Work>();
  readonly #followers = new Set<() => void>();
  #operations: readonly ServedOperation[] | undefined;

  /** @throws {ModhostError} ADMIN_INVALID: its module is not loaded then */
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

  /** Resolves when the calls of its operations are over; those that take longer than `grace` seconds are ended. */
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

  /** By the names of their modules. */
  pages(): ReadonlyMap<string, AdminPages> {
    return new Map(
      this.#current().flatMap(([{ item, owner }]) =>
        item.pages === undefined ? [] : [[owner.name, item.pages] as const],
      ),
    );
  }

  /** Hears that items came or went. */
  follow(hear: () => void): void {
    this.#followers.add(hear);
  }

  #current(): [Owned, Work][] {
    const all = [...this.#items];
    return all.filter(([{ owner }]) => {
      return all.findLast(([other]) => isSameModule(other.owner, owner))?.[0].owner === owner;
    });
  }

  #changed(): void {
    this.#operations = undefined;
    for (const hear of this.#followers) hear();
  }
}

/** The calls of one item's operations that are under way. */
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

/** What both would be. */
function clashes({ item: own }: Owned, { item: other, owner }: Owned): string[] {
  const isTaken = `is of the module ${owner.name} already`;
  const operations = (own.operations ?? []).flatMap(({ name, method, path }) => {
    return (other.operations ?? []).flatMap((taken) => [
      ...(name === taken.name ? [`the operation ${name} ${isTaken}`] : []),
      ...(method === taken.method && isSamePlace(path, taken.path) ? [`${method} ${path} ${isTaken}`] : []),
    ]);
  });
  const names = (kind: "topics" | "shapes") => {
    const taken = other[kind] ?? {};
    const both = Object.keys(own[kind] ?? {}).filter((name) => Object.hasOwn(taken, name));
    return both.map((name) => `the ${kind.slice(0, -1)} ${name} ${isTaken}`);
  };
  return [...operations, ...names("topics"), ...names("shapes")];
}

/** `/a/{x}` and `/a/{y}` are one place. */
const isSamePlace = (a: string, b: string) => placeOf(a) === placeOf(b);
const placeOf = (path: string) => path.replace(/\{\w+\}/g, "{}");

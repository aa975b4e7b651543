import type { OwnedItem } from "../types.ts";
import { isThenable, type Release } from "./ledger.ts";

interface Receiver {
  readonly added: (item: OwnedItem) => void;
  readonly removed: (item: OwnedItem) => unknown;
  /**
   * Called with errors that `added` throws for existing items, and with those that `removed`
   * throws.
   */
  readonly fault: (error: unknown) => void;
  /** The module that the receiver belongs to; undefined for the host's own. */
  readonly owner: string | undefined;
  /** Items that `added` took without throwing. */
  readonly accepted: Set<OwnedItem>;
}

type Handlers = Pick<Receiver, "added" | "removed" | "fault">;

interface Kind {
  readonly items: Set<OwnedItem>;
  readonly receivers: Set<Receiver>;
}

/** Items by kind and their receivers: through these, modules use what other modules declare. */
export class Items {
  readonly #kinds = new Map<string, Kind>();

  /**
   * Passes the item to every receiver. If one throws, the item is removed from the others and the
   * error goes to the caller. The returned function removes the item; its promise resolves when the
   * receivers have released it.
   */
  add(kind: string, item: OwnedItem): Release {
    const { items, receivers } = this.#kind(kind);
    items.add(item);
    try {
      for (const receiver of [...receivers]) accept(receiver, item);
    } catch (error) {
      this.#remove(kind, item);
      throw error;
    }
    return () => this.#remove(kind, item);
  }

  /**
   * Calls `added` for the existing items and for each new one, until the returned function is
   * called.
   */
  handle(kind: string, handlers: Handlers, owner?: string): Release {
    const { items, receivers } = this.#kind(kind);
    const receiver: Receiver = { ...handlers, owner, accepted: new Set() };
    receivers.add(receiver);
    for (const item of [...items]) {
      try {
        accept(receiver, item);
      } catch (error) {
        receiver.fault(error);
      }
    }
    return () => {
      receivers.delete(receiver);
      this.#tidy(kind);
    };
  }

  /** Returns the current items of a kind. */
  of(kind: string): OwnedItem[] {
    return [...(this.#kinds.get(kind)?.items ?? [])];
  }

  /** Returns true if a receiver for the kind exists. */
  isReceived(kind: string): boolean {
    return (this.#kinds.get(kind)?.receivers.size ?? 0) > 0;
  }

  /** Returns one line for each item and receiver of a module. */
  ownedBy(owner: string): string[] {
    return [...this.#kinds].flatMap(([kind, { items, receivers }]) => [
      ...[...items].filter((item) => item.owner.name === owner).map(() => `item ${kind}`),
      ...[...receivers].filter((receiver) => receiver.owner === owner).map(() => `receiver of ${kind}`),
    ]);
  }

  #remove(kind: string, item: OwnedItem): Promise<unknown> | undefined {
    const { items, receivers } = this.#kind(kind);
    items.delete(item);
    const waiting = [...receivers].map((receiver) => dismiss(receiver, item)).filter((left) => left !== undefined);
    this.#tidy(kind);
    return waiting.length === 0 ? undefined : Promise.all(waiting);
  }

  #kind(name: string): Kind {
    let kind = this.#kinds.get(name);
    if (kind === undefined) this.#kinds.set(name, (kind = { items: new Set(), receivers: new Set() }));
    return kind;
  }

  #tidy(name: string): void {
    const kind = this.#kinds.get(name);
    if (kind !== undefined && kind.items.size === 0 && kind.receivers.size === 0) this.#kinds.delete(name);
  }
}

function accept(receiver: Receiver, item: OwnedItem): void {
  receiver.added(item);
  receiver.accepted.add(item);
}

function dismiss(receiver: Receiver, item: OwnedItem): Promise<unknown> | undefined {
  if (!receiver.accepted.delete(item)) return undefined;
  try {
    const result = receiver.removed(item);
    return isThenable(result) ? Promise.resolve(result).catch(receiver.fault) : undefined;
  } catch (error) {
    receiver.fault(error);
    return undefined;
  }
}

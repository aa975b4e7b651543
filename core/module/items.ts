import type { OwnedItem } from "../types.ts";
import { isThenable, type Release } from "./ledger.ts";

interface Receiver {
  readonly added: (item: OwnedItem) => void;
  readonly removed: (item: OwnedItem) => unknown;
  /** Hears what `added` throws about items that were there before, and what `removed` throws. */
  readonly fault: (error: unknown) => void;
  /** The module that it belongs to; undefined for the host's own. */
  readonly owner: string | undefined;
  /** Items that `added` took without throwing. */
  readonly accepted: Set<OwnedItem>;
}

type Handlers = Pick<Receiver, "added" | "removed" | "fault">;

interface Kind {
  readonly items: Set<OwnedItem>;
  readonly receivers: Set<Receiver>;
}

/** Items by kind, and who is told of them: the seam through which one module uses what others declare. */
export class Items {
  readonly #kinds = new Map<string, Kind>();

  /**
   * Tells every receiver. When one throws, the item is taken back from the others and the error goes to the caller.
   * The returned function removes the item; its promise is of receivers that need time to let go.
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

  /** Calls `added` for the items that are there and for each that comes; the returned function ends that. */
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

  /** Those of a kind that are there now. */
  of(kind: string): OwnedItem[] {
    return [...(this.#kinds.get(kind)?.items ?? [])];
  }

  /** True when somebody takes items of the kind. */
  isReceived(kind: string): boolean {
    return (this.#kinds.get(kind)?.receivers.size ?? 0) > 0;
  }

  /** One line for each item and receiver of a module. */
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

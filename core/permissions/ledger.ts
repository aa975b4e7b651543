/** Counts how often modules use permissions, and how often they are refused. */
import type { ModulePermissions } from "../types.ts";
import type { Permission } from "./set.ts";

/** The uses of one permission. */
export interface PermissionUse extends Permission {
  used: number;
  denied: number;
  /** Milliseconds since 1970. */
  last: number;
}

/**
 * Maximum number of permissions that are counted for a module. A module chooses the names that it
 * tries, and could fill the memory with them.
 */
const MAX_COUNTED = 256;
/** Maximum number of characters of an item; see above. */
const MAX_LENGTH = 256;

export class PermissionLedger {
  readonly #modules = new Map<string, Map<string, PermissionUse>>();
  readonly #declared = new Map<string, ModulePermissions>();
  readonly #now: () => number;

  constructor(now: () => number = Date.now) {
    this.#now = now;
  }

  /** Counts a use, or a refusal; returns true for the first refusal of this permission. */
  count(module: string, { kind, item }: Permission, isAllowed: boolean): boolean {
    const counted = this.#of(module);
    const clipped = item.length > MAX_LENGTH ? `${item.slice(0, MAX_LENGTH - 1)}…` : item;
    const key = `${kind} ${clipped}`;
    let use = counted.get(key);
    if (use === undefined) {
      if (counted.size >= MAX_COUNTED) return false;
      counted.set(key, (use = { kind, item: clipped, used: 0, denied: 0, last: 0 }));
    }
    use.last = this.#now();
    if (isAllowed) use.used += 1;
    else use.denied += 1;
    return use.denied === 1 && !isAllowed;
  }

  /** Records what a module declares, which is shown although the module cannot be loaded. */
  declare(module: string, permissions: ModulePermissions): void {
    this.#declared.set(module, permissions);
  }

  /** Returns what a module declared when it was last evaluated outside of the server. */
  declaredBy(module: string): ModulePermissions {
    return this.#declared.get(module) ?? {};
  }

  /** Returns the uses by a module, in the order of the first ones. */
  of(module: string): readonly Readonly<PermissionUse>[] {
    return [...(this.#modules.get(module)?.values() ?? [])];
  }

  #of(module: string): Map<string, PermissionUse> {
    let found = this.#modules.get(module);
    if (found === undefined) this.#modules.set(module, (found = new Map()));
    return found;
  }
}

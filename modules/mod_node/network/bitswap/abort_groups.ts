/**
 * Groups members by the signal that ends them, with one listener per signal, because thousands of
 * members may share one.
 */
export class AbortGroups<T> {
  readonly #onAbort: (member: T, signal: AbortSignal) => void;
  readonly #groups = new Map<AbortSignal, { readonly members: Set<T>; readonly listener: () => void }>();
  readonly #signals = new Map<T, AbortSignal>();

  /** @param onAbort called for each member; it may delete members */
  constructor(onAbort: (member: T, signal: AbortSignal) => void) {
    this.#onAbort = onAbort;
  }

  add(signal: AbortSignal, member: T): void {
    let group = this.#groups.get(signal);
    if (group === undefined) {
      const members = new Set<T>();
      const listener = () => {
        for (const each of members) this.#onAbort(each, signal);
      };
      group = { members, listener };
      this.#groups.set(signal, group);
      signal.addEventListener("abort", listener, { once: true });
    }
    group.members.add(member);
    this.#signals.set(member, signal);
  }

  delete(member: T): void {
    const signal = this.#signals.get(member);
    if (signal === undefined) return;
    this.#signals.delete(member);
    const group = this.#groups.get(signal);
    group?.members.delete(member);
    if (group?.members.size !== 0) return;
    this.#groups.delete(signal);
    signal.removeEventListener("abort", group.listener);
  }
}

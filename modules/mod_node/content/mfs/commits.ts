/**
 * Makes changes durable, for a tree that only this host changes. A commit writes the changes to the
 * journal or, from time to time, stores the root that includes them. Calls that arrive while a
 * commit is being written share the next one.
 */
import type { CID } from "multiformats/cid";
import type { Journal, NamespaceChange } from "./journal.ts";

export interface CommitsDeps {
  readonly journal: Journal;
  /** Stores the tree. Calls `stored` before the tree changes again. */
  readonly storeRoot: (stored: () => void) => Promise<CID>;
  /** Whether the next commit must store the root. */
  readonly isLarge: () => boolean;
  /** Resolves when the blocks that were put are durable. */
  readonly sync: () => Promise<void>;
}

export class Commits {
  readonly #deps: CommitsDeps;
  /** Changes of the tree that are not on the disk yet. */
  #changes: NamespaceChange[] = [];
  /** Whether the next commit stores the root. */
  #whole = false;
  #committing: Promise<void> | undefined;
  #waiting: Promise<void> | undefined;

  constructor(deps: CommitsDeps) {
    this.#deps = deps;
  }

  /** Number of changes that are not on the disk yet. */
  get pending(): number {
    return this.#changes.length;
  }

  add(changes: readonly NamespaceChange[]): void {
    this.#changes.push(...changes);
  }

  /** Drops the changes that are not on the disk yet. */
  drop(): void {
    this.#changes = [];
  }

  /** Resolves when all changes up to now are on the disk, with `whole` as a stored root. */
  commit(whole: boolean): Promise<void> {
    this.#whole ||= whole;
    this.#waiting ??= this.#commitAfter(this.#committing);
    return this.#waiting;
  }

  async #commitAfter(before: Promise<void> | undefined): Promise<void> {
    await before?.catch(() => {});
    this.#committing = this.#waiting;
    this.#waiting = undefined;
    const whole = this.#whole || this.#deps.isLarge();
    this.#whole = false;
    let taken: NamespaceChange[] = [];
    const take = () => {
      taken = this.#changes;
      this.#changes = [];
      return taken;
    };
    try {
      await (whole ? this.#keepRoot(take) : this.#keepChanges(take));
    } catch (error) {
      this.#changes = [...taken, ...this.#changes];
      throw error;
    }
  }

  async #keepChanges(take: () => NamespaceChange[]): Promise<void> {
    const changes = take();
    if (changes.length === 0) return;
    await this.#deps.sync();
    await this.#deps.journal.add(changes);
  }

  async #keepRoot(take: () => NamespaceChange[]): Promise<void> {
    const { journal, storeRoot, sync } = this.#deps;
    const cid = await storeRoot(take);
    const stored = await journal.root();
    if (journal.length === 0 && stored?.equals(cid)) return;
    await sync();
    await journal.keep(cid);
  }
}

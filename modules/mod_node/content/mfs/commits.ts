/**
 * Makes the changes of a tree durable that this host alone changes. A commit writes them to the
 * journal or, now and then, stores the root that they lead to. Calls that come while a commit is
 * being written share the next one.
 */
import type { CID } from "multiformats/cid";
import type { Change, Journal } from "./journal.ts";

export interface CommitsDeps {
  readonly journal: Journal;
  /** Stores the tree; calls `stored` before it is changed again. */
  readonly storeRoot: (stored: () => void) => Promise<CID>;
  /** The next commit stores the root in any case. */
  readonly isLarge: () => boolean;
  /** What was put is durable when it resolves. */
  readonly sync: () => Promise<void>;
}

export class Commits {
  readonly #deps: CommitsDeps;
  /** Changes of the tree that are not on the disk yet. */
  #changes: Change[] = [];
  /** The next commit stores the root. */
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

  add(changes: readonly Change[]): void {
    this.#changes.push(...changes);
  }

  /** What is not on the disk is of no use any more. */
  drop(): void {
    this.#changes = [];
  }

  /** Resolves when all changes up to now are on the disk; with `whole`, as a stored root. */
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
    let taken: Change[] = [];
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

  async #keepChanges(take: () => Change[]): Promise<void> {
    const changes = take();
    if (changes.length === 0) return;
    await this.#deps.sync();
    await this.#deps.journal.add(changes);
  }

  async #keepRoot(take: () => Change[]): Promise<void> {
    const { journal, storeRoot, sync } = this.#deps;
    const cid = await storeRoot(take);
    const kept = await journal.root();
    if (journal.length === 0 && kept?.equals(cid)) return;
    await sync();
    await journal.keep(cid);
  }
}

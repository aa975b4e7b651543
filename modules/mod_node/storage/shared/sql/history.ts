/**
 * The ids of the commits that a host knows. They show when the database has another history than
 * the copies of this host.
 */
import type { Position } from "../log.ts";

export class History {
  readonly #ids = new Map<Position, string>();

  /** Records the id of the commit at a position. */
  note(position: Position, id: unknown): void {
    if (typeof id === "string") this.#ids.set(position, id);
  }

  /** Whether the commit at this position is known with another id. */
  contradicts(position: Position, id: unknown): boolean {
    const known = this.#ids.get(position);
    return known !== undefined && typeof id === "string" && id !== known;
  }

  /**
   * Returns the id of a commit; null when it is unknown. Forgets earlier commits, because nobody
   * asks for them again.
   */
  at(position: Position): string | null {
    for (const each of this.#ids.keys()) if (each < position) this.#ids.delete(each);
    return this.#ids.get(position) ?? null;
  }

  /** Forgets all commits, because the database may no longer have them. */
  clear(): void {
    this.#ids.clear();
  }
}

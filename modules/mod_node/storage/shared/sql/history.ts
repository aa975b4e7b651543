/** The ids of the commits that a host knows: by them it finds out that the database has another history than its copies. */
import type { Position } from "../log.ts";

export class History {
  readonly #ids = new Map<Position, string>();

  /** The commit there has this id. */
  note(position: Position, id: unknown): void {
    if (typeof id === "string") this.#ids.set(position, id);
  }

  /** The commit there is known by another id. */
  contradicts(position: Position, id: unknown): boolean {
    const known = this.#ids.get(position);
    return known !== undefined && typeof id === "string" && id !== known;
  }

  /** The id of a commit, null where it is not known; nobody asks for those before it again. */
  at(position: Position): string | null {
    for (const each of this.#ids.keys()) if (each < position) this.#ids.delete(each);
    return this.#ids.get(position) ?? null;
  }

  /** None of these is known to be in the database any more. */
  clear(): void {
    this.#ids.clear();
  }
}

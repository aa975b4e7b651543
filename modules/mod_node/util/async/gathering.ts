/** Work that is done for all who ask for it at about the same time. */

/** Milliseconds that the first of them waits at most, however many come. */
const LONGEST_MS = 2;

/**
 * Begins once a turn of the event loop has brought nobody else who asks. Those who ask while the
 * process is busy with calls of their kind share what costs a thread and the disk as much for one
 * as for many; who asks alone waits for one turn.
 */
export class Gathering {
  readonly #begin: () => void;
  #turn: NodeJS.Immediate | undefined;
  /** Somebody has asked since the last turn. */
  #grows = false;
  #until = 0;

  constructor(begin: () => void) {
    this.#begin = begin;
  }

  ask(): void {
    this.#grows = true;
    if (this.#turn !== undefined) return;
    this.#until = performance.now() + LONGEST_MS;
    this.#next();
  }

  /** It does not begin for those who have asked. */
  stop(): void {
    clearImmediate(this.#turn);
    this.#turn = undefined;
  }

  #next(): void {
    this.#turn = setImmediate(() => {
      if (this.#grows && performance.now() < this.#until) {
        this.#grows = false;
        this.#next();
        return;
      }
      this.#turn = undefined;
      this.#begin();
    });
  }
}

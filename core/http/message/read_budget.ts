/**
 * Bytes of a body after which other work may run. Without a limit Node reads up to 2 MiB of one
 * connection in a turn of the event loop.
 */
const MAX_TURN_BYTES = 512 * 1024;

/**
 * Limits how many bytes of a body are read in one turn of the event loop, so that other requests
 * wait less.
 */
export class ReadBudget {
  readonly #goOn: () => void;
  #bytes = 0;
  /** Whether the budget of this turn is used up. */
  isOver = false;

  /** `goOn` is called when reading may continue, in a later turn. */
  constructor(goOn: () => void) {
    this.#goOn = goOn;
  }

  /** Counts bytes that have arrived. Returns true when reading must stop until `goOn` is called. */
  took(bytes: number): boolean {
    this.#bytes += bytes;
    if (this.isOver || this.#bytes < MAX_TURN_BYTES) return this.isOver;
    this.isOver = true;
    setImmediate(() => {
      this.isOver = false;
      this.#bytes = 0;
      this.#goOn();
    });
    return true;
  }
}

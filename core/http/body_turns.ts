/** Bytes of a body after which other work gets its turn: Node alone reads up to 2 MiB of one connection in a turn of the event loop. */
const MAX_TURN_BYTES = 512 * 1024;

/** Stops the reading of a body that comes fast for one turn of the event loop now and then, so that others wait less. */
export class BodyTurns {
  readonly #goOn: () => void;
  #bytes = 0;
  /** Nothing is to be read in this turn any more. */
  isOver = false;

  /** `goOn` is called when a new turn has begun. */
  constructor(goOn: () => void) {
    this.#goOn = goOn;
  }

  /** So many bytes have come; true when reading is to stop until `goOn`. */
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

/** Memory that several use: it is given back when all are done with it. */
export class RefcountedBuffer {
  #users = 1;
  readonly #free: () => void;

  /** `end` gives it back. Who makes a lease is its first user. */
  constructor(end: () => void) {
    this.#free = end;
  }

  /** One user more; the function that is returned says that it is through, and may be called again. */
  retain(): () => void {
    this.#users += 1;
    let over = false;
    return () => {
      if (over) return;
      over = true;
      this.release();
    };
  }

  /** The first user is through. */
  release(): void {
    this.#users -= 1;
    if (this.#users === 0) this.#free();
  }
}

/** Memory that several use: it is given back when all are done with it. */
export class Lease {
  #users = 1;
  readonly #end: () => void;

  /** `end` gives it back. Who makes a lease is its first user. */
  constructor(end: () => void) {
    this.#end = end;
  }

  /** One user more; the function that is returned says that it is through, and may be called again. */
  share(): () => void {
    this.#users += 1;
    let over = false;
    return () => {
      if (over) return;
      over = true;
      this.leave();
    };
  }

  /** The first user is through. */
  leave(): void {
    this.#users -= 1;
    if (this.#users === 0) this.#end();
  }
}

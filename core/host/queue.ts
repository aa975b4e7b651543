import { asHost } from "../util/usage.ts";

/** Runs operations that change a host one after another, in the order of the requests. */
export class Queue {
  /** Settles when the last requested operation has ended. */
  #last: Promise<unknown> = Promise.resolve();

  /** Runs the operation when all earlier ones have ended, successfully or not. */
  add<T>(operation: () => Promise<T>): Promise<T> {
    // A module may have requested the operation. Everything that the host opens in it still belongs
    // to the host.
    const work = asHost(() => this.#last.then(operation));
    this.#last = work.catch(() => undefined);
    return work;
  }

  /** Resolves when all operations requested so far have ended. */
  settled(): Promise<unknown> {
    return this.#last;
  }
}

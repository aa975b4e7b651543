/** Operations that change a host: one after another, in the order in which they were asked for. */
export class Queue {
  /** Ends when the last operation that was asked for has ended. */
  #last: Promise<unknown> = Promise.resolve();

  /** Runs it when all that were asked for before it have ended, whatever became of them. */
  add<T>(operation: () => Promise<T>): Promise<T> {
    const work = this.#last.then(operation);
    this.#last = work.catch(() => undefined);
    return work;
  }

  /** Resolves when those that were asked for until now have ended. */
  settled(): Promise<unknown> {
    return this.#last;
  }
}

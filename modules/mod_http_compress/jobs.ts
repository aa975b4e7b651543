/** A bound on the compressions that run at once: they share the threads of the file system. */
export class Jobs {
  #max: number;
  #running = 0;
  readonly #waiting: (() => void)[] = [];

  constructor(max: number) {
    this.#max = max;
  }

  set max(max: number) {
    this.#max = max;
    this.#next();
  }

  /** Undefined, at once, when there is no room. */
  try<T>(job: () => Promise<T>): Promise<T> | undefined {
    return this.#running < this.#max ? this.#run(job) : undefined;
  }

  /** Waits until there is room. */
  async wait<T>(job: () => Promise<T>): Promise<T> {
    // What waits is let in before those who come later.
    if (this.#running < this.#max) return this.#run(job);
    await new Promise<void>((resolve) => this.#waiting.push(resolve));
    try {
      return await job();
    } finally {
      this.#leave();
    }
  }

  async #run<T>(job: () => Promise<T>): Promise<T> {
    this.#running += 1;
    try {
      return await job();
    } finally {
      this.#leave();
    }
  }

  #leave(): void {
    this.#running -= 1;
    this.#next();
  }

  /** Whoever is let in has its place at once, before anybody else can ask. */
  #next(): void {
    while (this.#running < this.#max) {
      const resolve = this.#waiting.shift();
      if (resolve === undefined) return;
      this.#running += 1;
      resolve();
    }
  }
}

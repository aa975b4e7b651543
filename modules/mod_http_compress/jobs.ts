/**
 * Limits the number of concurrent compressions, because they share the threads of the file system.
 */
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

  /** Returns undefined at once if no slot is free. */
  try<T>(job: () => Promise<T>): Promise<T> | undefined {
    return this.#running < this.#max ? this.#run(job) : undefined;
  }

  /** Waits for a free slot. */
  async wait<T>(job: () => Promise<T>): Promise<T> {
    // Waiting jobs run before later ones.
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

  /** A waiting job gets its slot at once, before anyone else can take it. */
  #next(): void {
    while (this.#running < this.#max) {
      const resolve = this.#waiting.shift();
      if (resolve === undefined) return;
      this.#running += 1;
      resolve();
    }
  }
}

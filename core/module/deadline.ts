/** The longest delay of a timer of the platform, milliseconds. */
const longestDelay = 2 ** 31 - 1;

/** A moment after which nobody waits any more. */
export class Deadline {
  readonly #end: number;

  constructor(seconds: number) {
    this.#end = performance.now() + seconds * 1000;
  }

  /** The earlier of this moment and `seconds` from now. */
  within(seconds: number): Deadline {
    return new Deadline(Math.max(0, Math.min(seconds, (this.#end - performance.now()) / 1000)));
  }

  /** True when the work was done in time. Work that fails is done. */
  async wait(work: unknown): Promise<boolean> {
    const { promise: late, resolve } = Promise.withResolvers<boolean>();
    const timer = setTimeout(resolve, Math.min(longestDelay, Math.max(0, this.#end - performance.now())), false);
    try {
      return await Promise.race([
        Promise.resolve(work).then(
          () => true,
          () => true,
        ),
        late,
      ]);
    } finally {
      clearTimeout(timer);
    }
  }
}

import { RunningTimeout } from "../util/running_timeout.ts";

/** A moment at which waiting ends. Only the time in which this process runs counts. */
export class Deadline {
  readonly #seconds: number;
  readonly #end: number;

  constructor(seconds: number) {
    this.#seconds = seconds;
    this.#end = performance.now() + seconds * 1000;
  }

  /** Returns the earlier of this deadline and `seconds` from now. */
  within(seconds: number): Deadline {
    return new Deadline(Math.max(0, Math.min(seconds, (this.#end - performance.now()) / 1000)));
  }

  /** Resolves to true if the work settles in time, even if it fails. */
  async wait(work: unknown): Promise<boolean> {
    const { promise: late, resolve } = Promise.withResolvers<boolean>();
    const timer = new RunningTimeout(Math.max(0, this.#end - performance.now()), () => resolve(false));
    try {
      return await Promise.race([
        Promise.resolve(work).then(
          () => true,
          () => true,
        ),
        late,
      ]);
    } finally {
      timer.clear();
    }
  }

  /**
   * Resolves to the result of the work. Late work is not stopped, but its result is ignored.
   * @throws the error of the work; if it is late, an Error that names the option with the seconds
   */
  async result<T>(work: Promise<T>, option: string): Promise<T> {
    if (await this.wait(work)) return work;
    throw new Error(`it took longer than ${this.#seconds} s: let it settle sooner, or raise the option ${option}`);
  }
}

import { RunningTimeout } from "../util/running_timeout.ts";

/** A moment after which nobody waits any more; work that is waited for has the time in which this process runs. */
export class Deadline {
  readonly #seconds: number;
  readonly #end: number;

  constructor(seconds: number) {
    this.#seconds = seconds;
    this.#end = performance.now() + seconds * 1000;
  }

  /** The earlier of this moment and `seconds` from now. */
  within(seconds: number): Deadline {
    return new Deadline(Math.max(0, Math.min(seconds, (this.#end - performance.now()) / 1000)));
  }

  /** True when the work was done in time. Work that fails is done. */
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
   * What the work gives. Late work is not stopped, but what becomes of it is ignored.
   * @throws what the work throws; an Error that names the option with the seconds, when it is late
   */
  async result<T>(work: Promise<T>, option: string): Promise<T> {
    if (await this.wait(work)) return work;
    throw new Error(`it took longer than ${this.#seconds} s: let it settle sooner, or raise the option ${option}`);
  }
}

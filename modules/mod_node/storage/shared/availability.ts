/** Whether what is shared can be reached: observed in the calls that are made anyway, and asked for while it cannot. */
import { NodeError } from "../../util/errors.ts";

const PROBE_MS = 1000;

interface Watched {
  fault: string | undefined;
  probe: NodeJS.Timeout | undefined;
}

export class Availability {
  readonly #watched = new Map<string, Watched>();
  readonly #onChange: (problem: string | undefined) => void;
  #closed = false;

  /** `onChange` is called when something goes or comes back, with what is said then. */
  constructor(onChange: (problem: string | undefined) => void) {
    this.#onChange = onChange;
  }

  /** What is away, in a sentence. */
  get problem(): string | undefined {
    const faults = [...this.#watched.values()].flatMap(({ fault }) => fault ?? []);
    return faults.length === 0 ? undefined : faults.join("; ");
  }

  /**
   * The same object: the outcome of its methods tells whether it can be reached. `probe` asks it for something small; it is called
   * while the answer is no.
   */
  watch<T extends object>(name: string, target: T, probe: (target: T) => Promise<unknown>): T {
    const watched: Watched = { fault: undefined, probe: undefined };
    this.#watched.set(name, watched);
    const observe = (outcome: Promise<unknown>) =>
      outcome.then(
        () => this.#answered(watched),
        (error: unknown) => {
          if (!NodeError.is(error) || error.code !== "STORE_UNAVAILABLE") return;
          this.#missed(watched, error, () => observe(probe(target)));
        },
      );
    return new Proxy(target, {
      get: (_, member) => {
        const value: unknown = Reflect.get(target, member, target);
        if (typeof value !== "function") return value;
        return (...given: unknown[]) => {
          const outcome: unknown = Reflect.apply(value, target, given);
          if (outcome instanceof Promise) void observe(outcome);
          return outcome;
        };
      },
    });
  }

  close(): void {
    this.#closed = true;
    for (const { probe } of this.#watched.values()) clearTimeout(probe);
  }

  #answered(watched: Watched): void {
    if (watched.fault === undefined) return;
    clearTimeout(watched.probe);
    watched.fault = undefined;
    this.#onChange(this.problem);
  }

  #missed(watched: Watched, { message }: Error, probe: () => void): void {
    if (this.#closed) return;
    clearTimeout(watched.probe);
    watched.probe = setTimeout(probe, PROBE_MS).unref();
    const isNew = watched.fault === undefined;
    watched.fault = message;
    if (isNew) this.#onChange(this.problem);
  }
}

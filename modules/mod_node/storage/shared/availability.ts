/** Whether what is shared can be reached: observed in the calls that are made anyway, and asked for while it cannot. */
import { NodeError } from "../../util/errors.ts";

/** While it is away. */
const PROBE_MS = 1000;
/** While nobody calls: an outage is told before somebody meets it. */
const IDLE_MS = 10_000;

interface Watched {
  fault: string | undefined;
  /** The next question, and after how many milliseconds it is asked. */
  timer: NodeJS.Timeout;
  after: number;
}

export interface Periods {
  readonly probeMs?: number;
  readonly idleMs?: number;
}

export class Availability {
  readonly #watched = new Map<string, Watched>();
  readonly #onChange: (problem: string | undefined) => void;
  readonly #periods: Required<Periods>;
  #closed = false;

  /** `onChange` is called when something goes or comes back, with what is said then. */
  constructor(onChange: (problem: string | undefined) => void, { probeMs = PROBE_MS, idleMs = IDLE_MS }: Periods = {}) {
    this.#onChange = onChange;
    this.#periods = { probeMs, idleMs };
  }

  /** What is away, in a sentence. */
  get problem(): string | undefined {
    const faults = [...this.#watched.values()].flatMap(({ fault }) => fault ?? []);
    return faults.length === 0 ? undefined : faults.join("; ");
  }

  /**
   * The same object: the outcome of its methods tells whether it can be reached. `probe` asks it for something small; it is called
   * while the answer is no, and when nobody has called for a while.
   */
  watch<T extends object>(name: string, target: T, probe: (target: T) => Promise<unknown>): T {
    const { probeMs, idleMs } = this.#periods;
    const ask = () => void observe(probe(target));
    const watched: Watched = { fault: undefined, timer: setTimeout(ask, idleMs).unref(), after: idleMs };
    this.#watched.set(name, watched);
    const askIn = (milliseconds: number) => {
      clearTimeout(watched.timer);
      if (this.#closed) return;
      watched.timer = setTimeout(ask, milliseconds).unref();
      watched.after = milliseconds;
    };
    const observe = (outcome: Promise<unknown>) =>
      outcome.then(
        () => {
          this.#tell(watched, undefined);
          // Success is what is frequent: a timer that is begun again costs less than a new one.
          if (watched.after === idleMs && !this.#closed) watched.timer.refresh();
          else askIn(idleMs);
        },
        (error: unknown) => {
          const isAway = NodeError.is(error) && error.code === "STORE_UNAVAILABLE";
          if (isAway) this.#tell(watched, error.message);
          askIn(isAway ? probeMs : idleMs);
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
    for (const { timer } of this.#watched.values()) clearTimeout(timer);
  }

  #tell(watched: Watched, fault: string | undefined): void {
    if (this.#closed) return;
    const isNew = (watched.fault === undefined) !== (fault === undefined);
    watched.fault = fault;
    if (isNew) this.#onChange(this.problem);
  }
}

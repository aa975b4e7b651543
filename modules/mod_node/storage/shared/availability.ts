/**
 * Whether what is shared can be reached, and takes writes: observed in the calls that are made anyway, and asked for while that is not
 * so.
 */
import { settledWithin } from "../../util/async/within.ts";
import { NodeError } from "../../util/errors.ts";

/** While it is away. */
const PROBE_MS = 1000;
/** While nobody calls: an outage is told before somebody meets it. */
const IDLE_MS = 10_000;
/** A call waits so long for an answer of a store that is known to be away. */
const TRY_MS = 500;

export interface Periods {
  readonly probeMs?: number;
  readonly idleMs?: number;
  readonly tryMs?: number;
}

export interface WatchOptions<T> {
  /** What `problems` calls it. */
  readonly name?: string;
  /** Asks for something small, in bounded time: while the store is away, and when nobody has called for a while. */
  readonly probe: (target: T) => Promise<unknown>;
  /** Writes something small, where it may be that it can be read and not be written: while writes are refused. */
  readonly tryWriting?: (target: T) => Promise<unknown>;
  /** Methods that nobody need wait for while it is known to be away. */
  readonly refused: readonly (keyof T)[];
  /** Those whose result, if any, has a `body`: its end is an outcome as well. */
  readonly streams?: readonly (keyof T)[];
}

/** The store that each fault was first met in: what calls another one inside, such as a lock, fails with the other's. */
const origins = new WeakMap<NodeError, Watched>();

export class Availability {
  readonly #watched: Watched[] = [];
  readonly #onChange: (problem: string | undefined) => void;
  readonly #periods: Required<Periods>;

  /** `onChange` is called when something goes or comes back, with what is said then. */
  constructor(
    onChange: (problem: string | undefined) => void,
    { probeMs = PROBE_MS, idleMs = IDLE_MS, tryMs = TRY_MS }: Periods = {},
  ) {
    this.#onChange = onChange;
    this.#periods = { probeMs, idleMs, tryMs };
  }

  /** What is away or takes no writes, in a sentence. */
  get problem(): string | undefined {
    const problems = this.#watched.flatMap(({ problem }) => problem ?? []);
    return problems.length === 0 ? undefined : problems.join("; ");
  }

  /** The same, by name. */
  get problems(): Readonly<Record<string, string>> {
    return Object.fromEntries(
      this.#watched.flatMap(({ name, problem }) => (problem && name ? [[name, problem] as const] : [])),
    );
  }

  /**
   * The same object: the outcome of its methods tells whether it can be reached. Once it is known to be away, those named
   * `refused` are tried only when it answers the probe at once, and reject with STORE_UNAVAILABLE otherwise.
   */
  watch<T extends object>(target: T, { name, probe, tryWriting, refused, streams = [] }: WatchOptions<T>): T {
    const watched = new Watched(
      name,
      { probe: () => probe(target), tryWriting: async () => tryWriting?.(target) },
      this.#periods,
      () => this.#onChange(this.problem),
    );
    this.#watched.push(watched);
    const isRefused = new Set<PropertyKey>(refused);
    const isStream = new Set<PropertyKey>(streams);
    return new Proxy(target, {
      get: (_, member) => {
        const value: unknown = Reflect.get(target, member, target);
        if (typeof value !== "function") return value;
        const call = (given: unknown[]) => {
          const outcome: unknown = Reflect.apply(value, target, given);
          if (!(outcome instanceof Promise)) return outcome;
          void watched.observe(outcome);
          return isStream.has(member) ? outcome.then((result) => watched.following(result)) : outcome;
        };
        return (...given: unknown[]) =>
          watched.fault === undefined || !isRefused.has(member)
            ? call(given)
            : watched.answers().then(() => call(given));
      },
    });
  }

  close(): void {
    for (const watched of this.#watched) watched.close();
  }
}

interface Stream {
  readonly body: AsyncIterable<unknown>;
}

interface Questions {
  probe(): Promise<unknown>;
  tryWriting(): Promise<unknown>;
}

class Watched {
  readonly name: string | undefined;
  /** Why it is away. */
  fault: NodeError | undefined;
  /** Why it takes no writes. Reads say nothing of that. */
  #refusal: NodeError | undefined;
  readonly #questions: Questions;
  readonly #periods: Required<Periods>;
  readonly #onChange: () => void;
  /** The next question, and after how many milliseconds it is asked. */
  #timer: NodeJS.Timeout;
  #after: number;
  #asking: Promise<void> | undefined;
  /** When nothing was refused for a while, it is tried whether writes are taken again. */
  #retry: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(name: string | undefined, questions: Questions, periods: Required<Periods>, onChange: () => void) {
    this.name = name;
    this.#questions = questions;
    this.#periods = periods;
    this.#onChange = onChange;
    this.#after = periods.idleMs;
    this.#timer = setTimeout(() => this.#ask(), this.#after).unref();
  }

  get problem(): string | undefined {
    return (this.fault ?? this.#refusal)?.message;
  }

  /** Never rejects. */
  async observe(outcome: Promise<unknown>): Promise<void> {
    const { idleMs, probeMs } = this.#periods;
    try {
      await outcome;
      if (this.fault !== undefined)
        this.#change(() => {
          this.fault = undefined;
        });
      // Success is what is frequent: a timer that is begun again costs less than a new one.
      if (this.#after === idleMs && !this.#closed) this.#timer.refresh();
      else this.#askIn(idleMs);
    } catch (error) {
      const fault = faultOf(error);
      const isOwn = fault !== undefined && this.#isOrigin(fault);
      const isAway = isOwn && fault.code === "STORE_UNAVAILABLE";
      if (isAway)
        this.#change(() => {
          this.fault = fault;
        });
      else if (isOwn) this.#refuse(fault);
      this.#askIn(isAway ? probeMs : idleMs);
    }
  }

  /** The same, but what its body fails with is heard. */
  following(result: Stream | undefined): Stream | undefined {
    if (result === undefined) return undefined;
    const { body } = result;
    const follow = (pieces: AsyncIterator<unknown>): AsyncIterator<unknown> => ({
      next: () => {
        const piece = pieces.next();
        piece.catch(() => this.observe(piece));
        return piece;
      },
      return: async () => (await pieces.return?.()) ?? { done: true, value: undefined },
    });
    return { ...result, body: { [Symbol.asyncIterator]: () => follow(body[Symbol.asyncIterator]()) } };
  }

  /** Resolves when it is no longer away. @throws NodeError STORE_UNAVAILABLE unless that is so at once */
  async answers(): Promise<void> {
    await settledWithin(this.#periods.tryMs, this.#ask());
    if (this.fault !== undefined) throw this.fault;
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
    clearTimeout(this.#retry);
  }

  /** One question at a time, for all who want to know. */
  #ask(): Promise<void> {
    this.#asking ??= this.observe(this.#questions.probe()).finally(() => {
      this.#asking = undefined;
    });
    return this.#asking;
  }

  #isOrigin(fault: NodeError): boolean {
    const origin = origins.get(fault) ?? this;
    origins.set(fault, origin);
    return origin === this;
  }

  #askIn(milliseconds: number): void {
    clearTimeout(this.#timer);
    if (this.#closed) return;
    this.#timer = setTimeout(() => this.#ask(), milliseconds).unref();
    this.#after = milliseconds;
  }

  #change(make: () => void): void {
    if (this.#closed) return;
    const wasWell = this.problem === undefined;
    make();
    if (wasWell !== (this.problem === undefined)) this.#onChange();
  }

  /** It was reached, and took no write. */
  #refuse(refusal: NodeError): void {
    this.#change(() => {
      this.fault = undefined;
      this.#refusal = refusal;
    });
    this.#tryWritingLater();
  }

  #tryWritingLater(): void {
    clearTimeout(this.#retry);
    if (!this.#closed) this.#retry = setTimeout(() => this.#tryWriting(), this.#periods.idleMs).unref();
  }

  async #tryWriting(): Promise<void> {
    try {
      await this.#questions.tryWriting();
      this.#change(() => {
        this.#refusal = undefined;
      });
    } catch (error) {
      // Whether it is away is asked elsewhere.
      const fault = faultOf(error);
      if (fault?.code === "STORE_READ_ONLY") this.#refuse(fault);
      else this.#tryWritingLater();
    }
  }
}

/** That a store is away or takes no writes, without what became of the call that met it. */
function faultOf(error: unknown): NodeError | undefined {
  if (!NodeError.is(error) || !(error.code === "STORE_UNAVAILABLE" || error.code === "STORE_READ_ONLY"))
    return undefined;
  return faultOf(error.cause) ?? error;
}

/**
 * Observes whether the shared stores are reachable and accept writes. The outcome of every call
 * counts; while a store is unreachable, and when nobody calls it, it is probed.
 */
import { settledWithin } from "../../util/async/within.ts";
import { NodeError } from "../../util/errors.ts";

/** Milliseconds between probes while a store is unreachable. */
const PROBE_MS = 1000;
/**
 * Milliseconds without a call before a store is probed, so that an outage is reported before a user
 * meets it.
 */
const IDLE_MS = 10_000;
/** Milliseconds that a call waits for a probe of a store that is known to be unreachable. */
const TRY_MS = 500;

export interface Periods {
  readonly probeMs?: number;
  readonly idleMs?: number;
  readonly tryMs?: number;
}

export interface WatchOptions<T> {
  /** The name of the store in `problems`. */
  readonly name?: string;
  /**
   * Makes a small request that takes a limited time. Called while the store is unreachable, and
   * when it was not called for a while.
   */
  readonly probe: (target: T) => Promise<unknown>;
  /**
   * Writes a small value. Called while writes are refused, for a store that can be readable and not
   * writable.
   */
  readonly tryWriting?: (target: T) => Promise<unknown>;
  /** Methods that fail fast while the store is known to be unreachable. */
  readonly refused: readonly (keyof T)[];
  /** Methods among them that write. They also fail fast while writes are refused. */
  readonly writes?: readonly (keyof T)[];
  /** Methods among them whose result has a `body`. The end of the body is an outcome as well. */
  readonly streams?: readonly (keyof T)[];
}

/**
 * The store in which each fault occurred first. A store that calls another one inside, such as a
 * lock, fails with the fault of the other.
 */
const origins = new WeakMap<NodeError, Watched>();

export class Availability {
  readonly #watched: Watched[] = [];
  readonly #onChange: (problem: string | undefined) => void;
  readonly #periods: Required<Periods>;

  /**
   * `onChange` is called with the current problem, if any, when a store becomes unreachable or
   * reachable, or starts or stops accepting writes.
   */
  constructor(
    onChange: (problem: string | undefined) => void,
    { probeMs = PROBE_MS, idleMs = IDLE_MS, tryMs = TRY_MS }: Periods = {},
  ) {
    this.#onChange = onChange;
    this.#periods = { probeMs, idleMs, tryMs };
  }

  /** Says in a sentence which stores are unreachable or read-only. */
  get problem(): string | undefined {
    const problems = this.#watched.flatMap(({ problem }) => problem ?? []);
    return problems.length === 0 ? undefined : problems.join("; ");
  }

  /**
   * Why a store is unreachable or read-only, by the name of the store. Other stores are left out.
   */
  get problems(): Readonly<Record<string, string>> {
    return Object.fromEntries(
      this.#watched.flatMap(({ name, problem }) => (problem && name ? [[name, problem] as const] : [])),
    );
  }

  /**
   * Wraps a store so that the outcomes of its methods show whether it is reachable. While it is
   * known to be unreachable, methods in `refused` first wait for a short probe and reject with
   * STORE_UNAVAILABLE if it fails. While it is known to refuse writes, methods in `writes` wait for
   * `tryWriting` in the same way and reject with STORE_READ_ONLY.
   */
  watch<T extends object>(
    target: T,
    { name, probe, tryWriting, refused, writes = [], streams = [] }: WatchOptions<T>,
  ): T {
    const watched = new Watched(
      name,
      { probe: () => probe(target), tryWriting: async () => tryWriting?.(target) },
      this.#periods,
      () => this.#onChange(this.problem),
    );
    this.#watched.push(watched);
    const isRefused = new Set<PropertyKey>(refused);
    const isWrite = new Set<PropertyKey>(writes);
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
        return (...given: unknown[]) => {
          if (watched.fault !== undefined && isRefused.has(member))
            return watched.requireReachable().then(() => call(given));
          if (watched.refusal !== undefined && isWrite.has(member))
            return watched.requireWritable().then(() => call(given));
          return call(given);
        };
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

interface Probes {
  probe(): Promise<unknown>;
  tryWriting(): Promise<unknown>;
}

class Watched {
  readonly name: string | undefined;
  /** Why the store is unreachable. */
  fault: NodeError | undefined;
  /** Why the store refuses writes. Successful reads do not clear it. */
  refusal: NodeError | undefined;
  readonly #probes: Probes;
  readonly #periods: Required<Periods>;
  readonly #onChange: () => void;
  /** The timer for the next probe, and its delay in milliseconds. */
  #timer: NodeJS.Timeout;
  #probeDelay: number;
  #probing: Promise<void> | undefined;
  #trying: Promise<void> | undefined;
  /** The timer for the next attempt to write after a refused write. */
  #retry: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(name: string | undefined, probes: Probes, periods: Required<Periods>, onChange: () => void) {
    this.name = name;
    this.#probes = probes;
    this.#periods = periods;
    this.#onChange = onChange;
    this.#probeDelay = periods.idleMs;
    this.#timer = setTimeout(() => this.#probe(), this.#probeDelay).unref();
  }

  get problem(): string | undefined {
    return (this.fault ?? this.refusal)?.message;
  }

  /** Updates the state by the outcome of a call. Never rejects. */
  async observe(outcome: Promise<unknown>): Promise<void> {
    const { idleMs, probeMs } = this.#periods;
    try {
      await outcome;
      if (this.fault !== undefined)
        this.#change(() => {
          this.fault = undefined;
        });
      // Success is the frequent case, and refreshing a timer costs less than creating one.
      if (this.#probeDelay === idleMs && !this.#closed) this.#timer.refresh();
      else this.#probeIn(idleMs);
    } catch (error) {
      const fault = faultOf(error);
      const isOwn = fault !== undefined && this.#isOrigin(fault);
      const isAway = isOwn && fault.code === "STORE_UNAVAILABLE";
      if (isAway)
        this.#change(() => {
          this.fault = fault;
        });
      else if (isOwn) this.#refuse(fault);
      this.#probeIn(isAway ? probeMs : idleMs);
    }
  }

  /** Wraps a result so that a failure of its body is observed too. */
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

  /**
   * Resolves when the store is reachable again.
   * @throws NodeError STORE_UNAVAILABLE when that takes longer than `tryMs`
   */
  async requireReachable(): Promise<void> {
    await settledWithin(this.#periods.tryMs, this.#probe());
    if (this.fault !== undefined) throw this.fault;
  }

  /**
   * Resolves when the store accepts writes again.
   * @throws NodeError STORE_READ_ONLY when that takes longer than `tryMs`
   */
  async requireWritable(): Promise<void> {
    await settledWithin(this.#periods.tryMs, this.#tryWriting());
    if (this.refusal !== undefined) throw this.refusal;
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
    clearTimeout(this.#retry);
  }

  /** Sends one probe at a time; concurrent callers share it. */
  #probe(): Promise<void> {
    this.#probing ??= this.observe(this.#probes.probe()).finally(() => {
      this.#probing = undefined;
    });
    return this.#probing;
  }

  #isOrigin(fault: NodeError): boolean {
    const origin = origins.get(fault) ?? this;
    origins.set(fault, origin);
    return origin === this;
  }

  #probeIn(milliseconds: number): void {
    clearTimeout(this.#timer);
    if (this.#closed) return;
    this.#timer = setTimeout(() => this.#probe(), milliseconds).unref();
    this.#probeDelay = milliseconds;
  }

  #change(make: () => void): void {
    if (this.#closed) return;
    const wasWell = this.problem === undefined;
    make();
    if (wasWell !== (this.problem === undefined)) this.#onChange();
  }

  /** Records that the store was reachable and refused a write. */
  #refuse(refusal: NodeError): void {
    this.#change(() => {
      this.fault = undefined;
      this.refusal = refusal;
    });
    this.#tryWritingLater();
  }

  #tryWritingLater(): void {
    clearTimeout(this.#retry);
    if (!this.#closed) this.#retry = setTimeout(() => this.#tryWriting(), this.#periods.idleMs).unref();
  }

  /** Tries to write, once at a time; concurrent callers share the attempt. Never rejects. */
  #tryWriting(): Promise<void> {
    this.#trying ??= this.#tryWritingOnce().finally(() => {
      this.#trying = undefined;
    });
    return this.#trying;
  }

  async #tryWritingOnce(): Promise<void> {
    try {
      await this.#probes.tryWriting();
      this.#change(() => {
        this.refusal = undefined;
      });
    } catch (error) {
      // Probes determine whether the store is reachable.
      const fault = faultOf(error);
      if (fault?.code === "STORE_READ_ONLY") this.#refuse(fault);
      else this.#tryWritingLater();
    }
  }
}

/**
 * Returns the error that says why a store is unreachable or read-only, without the errors around it
 * that describe the failed call.
 */
function faultOf(error: unknown): NodeError | undefined {
  if (!NodeError.is(error) || !(error.code === "STORE_UNAVAILABLE" || error.code === "STORE_READ_ONLY"))
    return undefined;
  return faultOf(error.cause) ?? error;
}

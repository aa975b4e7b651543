/** What the code of a module costs and how often it fails, counted where that code is called. */
import { ModhostError } from "./errors.ts";

/** A piece of synchronous work that takes longer holds up everybody, milliseconds. */
const LONG_PIECE_MS = 50;

/** Holds the number of the module whose code runs now, 0 for none: another thread reads it while this one is held up. */
export const runningNow = new Int32Array(new SharedArrayBuffer(4));

/** What a module was doing when a request of its failed. */
export const REQUEST_STEP = "answering a request";

const numbers = new Map<string, number>();
let named: (number: number, name: string) => void = () => undefined;

/** Calls `tell` for the number of every module, known or still to come. */
export function onNumbered(tell: (number: number, name: string) => void): void {
  named = tell;
  for (const [name, number] of numbers) tell(number, name);
}

function numberOf(name: string): number {
  let number = numbers.get(name);
  if (number === undefined) {
    numbers.set(name, (number = numbers.size + 1));
    named(number, name);
  }
  return number;
}

/**
 * The account of one instance of a module. Around each call of its code: `const outer = usage.enter()`, then
 * `usage.leave(outer, begun)` with `performance.now()` of the begin.
 */
export class Usage {
  /** Requests that reached a handler. */
  requests = 0;
  /** Those of them that failed by its fault. */
  failedRequests = 0;
  /** Other failures: of timers, hooks, promises that nobody handles. */
  faults = 0;
  /** Milliseconds for which its synchronous code held the event loop. */
  busy = 0;
  /** The same of pieces that took longer than 50 ms each: what others notice. */
  blocked = 0;
  /** How many of those there were. */
  longPieces = 0;
  /** Hears of each failure once it is counted. */
  failed: ((step: string, error: unknown) => void) | undefined;
  readonly #number: number;

  /** `name`: what the module is called where people read of it. */
  constructor(name: string) {
    this.#number = numberOf(name);
  }

  /** Its code runs now, or that of another instance of its name. */
  get isRunning(): boolean {
    return runningNow[0] === this.#number;
  }

  /** Its code is about to run; gives what `leave` wants. */
  enter(): number {
    const outer = runningNow[0] as number;
    runningNow[0] = this.#number;
    return outer;
  }

  /** Gives the milliseconds that it took. */
  leave(outer: number, begun: number): number {
    runningNow[0] = outer;
    const took = performance.now() - begun;
    this.busy += took;
    if (took > LONG_PIECE_MS) {
      this.blocked += took;
      this.longPieces += 1;
    }
    return took;
  }

  /** A request failed; what was meant as an answer is none of its failures. */
  requestFailed(error: unknown): void {
    if (!isFault(error)) return;
    this.failedRequests += 1;
    this.failed?.(REQUEST_STEP, error);
  }

  fault(step: string, error: unknown): void {
    if (!isFault(error)) return;
    this.faults += 1;
    this.failed?.(step, error);
  }
}

const usages = new WeakMap<object, Usage>();
const nobody = new Usage("nobody");

/** The account of whoever owns an item: a module object. */
export function usageOf(owner: object): Usage {
  return usages.get(owner) ?? nobody;
}

/** From now on the calls of what this owner adds go to the account. */
export function account(owner: object, usage: Usage): void {
  usages.set(owner, usage);
}

/** False for a thrown status, and for an error whose `code` is one: these are answers. */
function isFault(thrown: unknown): boolean {
  if (typeof thrown === "number") return false;
  if (ModhostError.is(thrown)) return thrown.status >= 500;
  if (typeof thrown !== "object" || thrown === null) return true;
  const { code, status, expose } = thrown as { code?: unknown; status?: unknown; expose?: unknown };
  // The last form is that of http-errors, which Koa throws.
  return !(isErrorStatus(code) || (isErrorStatus(status) && typeof expose === "boolean"));
}

function isErrorStatus(value: unknown): boolean {
  return typeof value === "number" && value >= 400 && value <= 599;
}

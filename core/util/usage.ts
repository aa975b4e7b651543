/** Counts the time and the failures of a module's code, where that code is called. */
import { AsyncLocalStorage } from "node:async_hooks";
import type { ModuleLog } from "../types.ts";
import { ModhostError, readableThrown } from "./errors.ts";
import { Bucket } from "./rate_limit.ts";

/**
 * The module on whose behalf code runs. Node.js propagates it through timers, promises, sockets and
 * threads that the code starts.
 */
const acting = new AsyncLocalStorage<Usage | undefined>();

/**
 * Returns the account of the module in whose asynchronous context this runs; undefined for the host
 * itself.
 */
export function actingNow(): Usage | undefined {
  return acting.getStore();
}

/** Runs code outside of any module's context, so that what it starts belongs to the host. */
export function asHost<A extends unknown[], R>(code: (...values: A) => R, ...values: A): R {
  return acting.getStore() === undefined ? code(...values) : acting.run(undefined, code, ...values);
}

let failedLast: Usage | undefined;

/**
 * Leaves the context of an uncaught exception after it was reported. Node.js 24 stays in it if a
 * native callback has thrown, and sockets that are accepted later would be in it.
 */
export function leaveFailed(): void {
  failedLast = acting.getStore();
  acting.enterWith(undefined);
}

/** Returns the account of the module whose uncaught exception was handled last. */
export function lastFailed(): Usage | undefined {
  return failedLast;
}

/**
 * Milliseconds after which a piece of synchronous work counts as long, because it delays everybody.
 */
const LONG_PIECE_MS = 50;

/**
 * Limits the log of a module that fails every millisecond: 50 failures at once, then six a minute.
 */
const LOGGED = { burst: 50, perSecond: 0.1 };

/**
 * Contains the number of the module whose code runs now, 0 for none: another thread reads it while
 * this one is blocked.
 */
export const runningNow = new Int32Array(new SharedArrayBuffer(4));

/** Names the step in which a module failed, in the log of a failed request. */
export const REQUEST_STEP = "handling a request";

/** This module carries the requests of all others, so its own code counts as the host's. */
const SERVICE = "http";

const numbers = new Map<string, number>();
let named: (number: number, name: string) => void = () => undefined;

/** Calls `report` for the number of every module, including those that are loaded later. */
export function onNumbered(report: (number: number, name: string) => void): void {
  named = report;
  for (const [name, number] of numbers) report(number, name);
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
 * The account of one instance of a module. Around each call of its code:
 * `const outer = usage.enter()`, then `usage.leave(outer, begun)`, where `begun` is
 * `performance.now()` before the call.
 */
export class Usage {
  /** Number of requests that reached a handler. */
  requests = 0;
  /** Number of these requests that failed because of the module. */
  failedRequests = 0;
  /** Number of other failures: of timers, hooks, unhandled promises. */
  faults = 0;
  /** Milliseconds for which its synchronous code blocked the event loop. */
  busy = 0;
  /** The part of `busy` in pieces of more than 50 ms each, which others notice. */
  blocked = 0;
  /** Number of pieces of more than 50 ms. */
  longPieces = 0;
  /** Whether its instance is being unloaded. */
  isLeaving = false;
  /** Called with each failure after it was counted. */
  failed: ((step: string, error: unknown) => void) | undefined;
  /** The name of the module for logs and messages. */
  readonly name: string;
  readonly #number: number;
  readonly #logged = new Bucket(LOGGED, performance.now());
  /** Number of failures since the last one that was logged. */
  #unlogged = 0;

  constructor(name: string) {
    this.name = name;
    this.#number = numberOf(name);
  }

  /** Whether its code runs now, or that of another instance of the module. */
  get isRunning(): boolean {
    return runningNow[0] === this.#number;
  }

  /**
   * Runs code of the module in its asynchronous context, so that later failures are attributed to
   * the module.
   */
  run<A extends unknown[], R>(code: (...values: A) => R, ...values: A): R {
    return acting.run(this.name === SERVICE ? undefined : this, code, ...values);
  }

  /** Records that its code is about to run; returns the value for `leave`. */
  enter(): number {
    const outer = runningNow[0] as number;
    runningNow[0] = this.#number;
    return outer;
  }

  /** Records the end of the code; returns the milliseconds that it took. */
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

  /**
   * Logs a failure with `write`, unless there are too many. Then the log says so once, and later
   * how many failures it omits.
   */
  logFailure({ warn }: Pick<ModuleLog, "warn">, write: () => void): void {
    if (this.#logged.take(performance.now()) > 0) {
      if (this.#unlogged === 0) warn("fails so often that most of its failures are only counted from now on");
      this.#unlogged += 1;
      return;
    }
    if (this.#unlogged > 0) warn("Failures before this one that were not logged: %d", this.#unlogged);
    this.#unlogged = 0;
    write();
  }

  /** Counts a failed request. Thrown values that are meant as responses do not count. */
  requestFailed(thrown: unknown): void {
    const error = readableThrown(thrown);
    if (!isFault(error)) return;
    this.failedRequests += 1;
    this.failed?.(REQUEST_STEP, error);
  }

  fault(step: string, thrown: unknown): void {
    const error = readableThrown(thrown);
    if (!isFault(error)) return;
    this.faults += 1;
    this.failed?.(step, error);
  }
}

/**
 * Creates an account for code that belongs to no module, such as middleware of the configuration.
 */
export function accountFor(name: string): Usage {
  return new Usage(name);
}

const usages = new WeakMap<object, Usage>();
const nobody = new Usage("nobody");

/** Returns the account of the owner of an item: a module object. */
export function usageOf(owner: object): Usage {
  return usages.get(owner) ?? nobody;
}

/**
 * Runs code of the module that owns an item. Everything that the code starts, and its later
 * failures, count for that module.
 */
export function actAs<R>(owner: object, code: () => R): R {
  return (usages.get(owner) ?? nobody).run(code);
}

/** Assigns an account to an owner: calls of its items are counted there. */
export function account(owner: object, usage: Usage): void {
  usages.set(owner, usage);
}

/** Returns false for a thrown status, and for an error whose `code` is one: these are responses. */
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

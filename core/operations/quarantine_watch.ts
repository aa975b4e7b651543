/** Quarantines modules that keep failing, and tries them again after increasing pauses. */

import type { Instance } from "../module/instance.ts";
import { keyOf } from "../module/instance.ts";
import { labelOf } from "../module/operation.ts";
import type { QuarantineNote } from "../module/quarantine_list.ts";
import type { QuarantineEvent } from "../types.ts";
import { reasonOf } from "../util/errors.ts";
import { counted } from "../util/text.ts";
import { type LoopUse, loopUseSince, type Sample, sampleAt, threadTime } from "./samples.ts";

/** The rules from the options; times in seconds. */
export interface QuarantineRules {
  /**
   * Number of failures within the window, other than failed requests, that lead to quarantine; 0:
   * nothing is quarantined.
   */
  readonly failures: number;
  /**
   * Number of failed requests within the window that lead to quarantine if they are at least half
   * of all; 0: they do not count.
   */
  readonly failedRequests: number;
  readonly window: number;
  readonly pause: number;
  readonly maxPause: number;
  /** Share of the event loop, in long pieces, that leads to quarantine; 0: it does not count. */
  readonly loopShare: number;
  /**
   * Seconds after which a module that uses nearly all of the event loop is quarantined; 0: only the
   * share counts.
   */
  readonly hogTime: number;
  readonly exempt: ReadonlySet<string>;
}

/** The modules of a host, for quarantining them and bringing them back. */
export interface QuarantineModules {
  live(): readonly Instance[];
  /** Returns the instance and all that depend on it. */
  leavingWith(instance: Instance): readonly Instance[];
  quarantine(instance: Instance, note: QuarantineNote): Promise<boolean>;
  /**
   * Loads everything that was quarantined with this instance. Rejects if the instance itself fails.
   */
  readmit(root: string): Promise<void>;
  /** Returns everything that is quarantined because of one instance. */
  with(root: string): readonly unknown[];
  updateNote(root: string, note: QuarantineNote): void;
}

export interface QuarantineWatchDeps {
  rules(): QuarantineRules;
  readonly modules: QuarantineModules;
  /** Runs a change of the running host after earlier ones; `what` is for the record. */
  change(what: string, operation: () => Promise<void>): Promise<unknown>;
  /** Logs a warning under the name of a module. */
  warn(instance: { readonly name: string; readonly host: string }, text: string): void;
  announce(event: QuarantineEvent): void;
  /** Returns a number from 0 to 1; default: random. */
  random?(): number;
  /** Returns the milliseconds of CPU time of this thread; default: as the system reports. */
  cpu?(): number;
}

/** The history of a module that was quarantined. */
interface Past {
  /** Number of times in a row that it was quarantined, without a good period between. */
  times: number;
  /** Length of its last pause in seconds. */
  pause: number;
  since: number;
  reason: string;
  /** When it came back, in milliseconds; undefined while it is quarantined. */
  back: number | undefined;
  timer: NodeJS.Timeout | undefined;
}

/** The share of the event loop is measured over this many seconds. */
const LOOP_WINDOW = 10;
/** The share that counts as nearly all of the event loop. */
const HOG_SHARE = 0.75;
/** Minimum number of long pieces: one slow request with a garbage collection does not count. */
const HOG_PIECES = 3;
/** The fraction of `hogTime` after which a warning is logged. */
const HOG_WARNING = 0.5;
/**
 * Pauses vary by up to a fifth, so that modules that failed together are not tried at the same
 * time.
 */
const JITTER = 0.2;
/** Seconds before the worker of an isolated module is started again for the first time. */
const RESTART_PAUSE = 0.1;
/** Number of samples that are taken within a window. */
const LOOKS = 10;

export class QuarantineWatch {
  readonly #deps: QuarantineWatchDeps;
  readonly #samples = new WeakMap<Instance, Sample[]>();
  readonly #past = new Map<string, Past>();
  /** Instances that are about to be quarantined. */
  readonly #leaving = new WeakSet<Instance>();
  /** Instances with a recent warning, so that warnings are not repeated each time. */
  readonly #warned = new WeakSet<Instance>();
  #looking: NodeJS.Timeout | undefined;
  #stopped = false;

  constructor(deps: QuarantineWatchDeps) {
    this.#deps = deps;
  }

  /**
   * Starts to sample the accounts. This happens even while nothing is quarantined, since the
   * options may change.
   */
  start(): void {
    const { window, hogTime } = this.#deps.rules();
    const seconds = Math.min(window, LOOP_WINDOW, ...(hogTime > 0 ? [hogTime] : []));
    this.#looking = setInterval(() => this.look(), (seconds / LOOKS) * 1000).unref();
  }

  /** Whether the configuration turns quarantine off. */
  get isOff(): boolean {
    return this.#deps.rules().failures === 0;
  }

  /** Stops: nothing is quarantined or retried afterwards. */
  stop(): void {
    this.#stopped = true;
    clearInterval(this.#looking);
    for (const { timer } of this.#past.values()) clearTimeout(timer);
  }

  /** Samples the accounts, and quarantines instances that blocked the loop for too long. */
  look(now = performance.now()): void {
    const { window } = this.#deps.rules();
    const milliseconds = (this.#deps.cpu ?? threadTime)();
    for (const instance of this.#deps.modules.live()) {
      const { requests, failedRequests, faults, blocked, longPieces } = instance.usage;
      const sample = { at: now, requests, failedRequests, faults, blocked, longPieces, cpu: milliseconds };
      const samples = this.#samples.get(instance) ?? [];
      samples.push(sample);
      const oldest = now - Math.max(window, LOOP_WINDOW) * 1000;
      while (samples.length > 1 && (samples[1] as Sample).at <= oldest) samples.shift();
      this.#samples.set(instance, samples);
      if (blocked > (samples.at(-2)?.blocked ?? 0)) this.#judge(instance, samples, sample);
    }
  }

  /** Quarantines an instance that blocks the event loop, or warns about it. */
  #judge(instance: Instance, samples: readonly Sample[], sample: Sample): void {
    const { loopShare, hogTime } = this.#deps.rules();
    if (loopShare === 0) return;
    const loopUse = (seconds: number) => loopUseSince(sampleAt(samples, sample.at - seconds * 1000), sample, seconds);
    const text = ({ share }: LoopUse, seconds: number) =>
      `it blocked the event loop for ${Math.round(share * 100)} % of ${seconds} s, in pieces of over 50 ms`;
    const isHog = ({ share, pieces }: LoopUse, most: number) => share > HOG_SHARE && pieces >= most;
    const long = loopUse(LOOP_WINDOW);
    if (long.share > loopShare) this.quarantine(instance, text(long, LOOP_WINDOW));
    if (hogTime === 0) return;
    const latest = loopUse(hogTime);
    const soon = loopUse(hogTime * HOG_WARNING);
    if (isHog(latest, HOG_PIECES)) this.quarantine(instance, text(latest, hogTime));
    else if (isHog(soon, HOG_PIECES - 1) && this.#isNew(instance))
      this.#deps.warn(instance, `will be quarantined if this continues: ${text(soon, hogTime * HOG_WARNING)}`);
  }

  /** Returns true if there was no warning about the instance within a window. */
  #isNew(instance: Instance): boolean {
    if (this.#warned.has(instance) || this.#leaving.has(instance)) return false;
    this.#warned.add(instance);
    setTimeout(() => this.#warned.delete(instance), this.#deps.rules().window * 1000).unref();
    return true;
  }

  /** Records a failure of a module, and quarantines it if it fails too often. */
  failed(instance: Instance, step: string, error: unknown): void {
    const { failures, failedRequests, window } = this.#deps.rules();
    if (failures === 0 || this.#stopped) return;
    const { usage } = instance;
    const before = sampleAt(this.#samples.get(instance) ?? [], performance.now() - window * 1000);
    const requests = usage.requests - before.requests;
    const failed = usage.failedRequests - before.failedRequests;
    const faults = usage.faults - before.faults;
    // A module that comes back is quarantined again at once if its `ready` fails.
    const isRelapse = step === "running module.ready" && this.#past.has(instance.key);
    const requestsFail = failedRequests > 0 && failed >= failedRequests && failed * 2 >= requests;
    if (faults < failures && !requestsFail && !isRelapse) return;
    const times =
      faults < failures
        ? `${failed} of its ${counted(requests, "request")} failed`
        : `it failed ${counted(faults, "time")}`;
    const what = isRelapse ? "it did not become ready" : `${times} within ${window} s`;
    this.quarantine(instance, `${what}, the last time ${step}: ${reasonOf(error)}`);
  }

  /**
   * Quarantines an instance, with those that depend on it. An instance that has ended by itself is
   * quarantined in any case. Returns false if it stays, because it is exempt or quarantine is off.
   */
  quarantine(instance: Instance, reason: string, { isDead = false } = {}): boolean {
    const { modules, warn } = this.#deps;
    const rules = this.#deps.rules();
    if (this.#stopped || !modules.live().includes(instance)) return false;
    if (rules.failures === 0 && !isDead) return false;
    if (this.#leaving.has(instance)) return true;
    const exempt = modules.leavingWith(instance).find(({ name }) => rules.exempt.has(name));
    if (exempt !== undefined && !isDead) {
      if (!this.#isNew(instance)) return false;
      const why = exempt === instance ? "it is in quarantine_exempt" : `${exempt.name}, in quarantine_exempt, needs it`;
      warn(instance, `stays, though ${reason}: ${why}`);
      return false;
    }
    this.#leaving.add(instance);
    void this.#deps
      .change(`quarantine ${labelOf(instance)}`, () => this.#quarantineNow(instance, reason, isDead))
      .catch(() => undefined);
    return true;
  }

  /**
   * Forgets the history of a module, for all hosts or for one, because an operator is taking care
   * of it.
   */
  forget(name: string, host?: string): void {
    for (const key of [...this.#past.keys()]) {
      const isMeant =
        host === undefined ? key.startsWith(keyOf(name, "")) : [host, "*"].some((at) => key === keyOf(name, at));
      if (isMeant) this.#forget(key);
    }
  }

  #forget(key: string): void {
    clearTimeout(this.#past.get(key)?.timer);
    this.#past.delete(key);
  }

  async #quarantineNow(instance: Instance, reason: string, isDead: boolean): Promise<void> {
    const { key, name, host } = instance;
    // The module came back in another way: an operator or a new configuration loaded it, perhaps
    // with a module that depends on it.
    if (this.#past.get(key)?.back === undefined) this.#forget(key);
    const past = this.#next(key, reason, isDead);
    const note = this.#note(past);
    if (!(await this.#deps.modules.quarantine(instance, note))) {
      this.#past.delete(key);
      return;
    }
    this.#deps.warn(instance, `is in quarantine for ${past.pause.toFixed(1)} s: ${reason}`);
    this.#deps.announce({ module: name, host, reason, next_try: note.nextTry as number });
    this.#wait(key, labelOf(instance), past);
  }

  /**
   * Computes the next pause: longer than the last one, or the first one again after a period
   * without failures.
   */
  #next(key: string, reason: string, isDead = false): Past {
    const { pause, maxPause, window } = this.#deps.rules();
    const previous = this.#past.get(key);
    const since = Date.now() / 1000;
    const well = previous?.back === undefined ? 0 : (performance.now() - previous.back) / 1000;
    const times = previous === undefined || well > Math.max(window, previous.pause) ? 0 : previous.times + 1;
    const random = this.#deps.random?.() ?? Math.random();
    const jitter = 1 + JITTER * (2 * random - 1);
    // A worker that ended by itself is started again almost at once, the first time.
    const long =
      isDead && times === 0 ? Math.min(RESTART_PAUSE, pause) : Math.min(maxPause, pause * 2 ** times * jitter);
    const begun = previous?.back === undefined ? (previous?.since ?? since) : since;
    const past: Past = { times, pause: long, since: begun, reason, back: undefined, timer: undefined };
    this.#past.set(key, past);
    return past;
  }

  #note({ reason, since, pause }: Past): QuarantineNote {
    return { reason, since, nextTry: Date.now() / 1000 + pause };
  }

  #wait(key: string, label: string, past: Past): void {
    if (this.#stopped) return;
    past.timer = setTimeout(() => {
      void this.#deps.change(`readmit ${label}`, () => this.#try(key, label)).catch(() => undefined);
    }, past.pause * 1000).unref();
  }

  async #try(key: string, label: string): Promise<void> {
    const { modules } = this.#deps;
    const past = this.#past.get(key);
    if (past === undefined || past.back !== undefined || modules.with(key).length === 0) return;
    modules.updateNote(key, { reason: past.reason, since: past.since, nextTry: undefined });
    // `module.ready` may fail before `readmit` returns.
    past.back = performance.now();
    try {
      await modules.readmit(key);
    } catch (error) {
      past.back = undefined;
      const next = this.#next(key, reasonOf(error));
      modules.updateNote(key, this.#note(next));
      this.#wait(key, label, next);
      throw error;
    }
  }
}

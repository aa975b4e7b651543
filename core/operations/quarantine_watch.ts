/** Modules that keep failing are taken out, and tried again after pauses that grow. */
import type { Instance } from "../module/instance.ts";
import { keyOf } from "../module/instance.ts";
import { labelOf } from "../module/operation.ts";
import type { QuarantineNote } from "../module/quarantine_list.ts";
import type { QuarantineEvent } from "../types.ts";
import { reasonOf } from "../util/errors.ts";
import { type Held, heldSince, type Sample, sampleAt, threadTime } from "./samples.ts";

/** What the options say; times in seconds. */
export interface QuarantineRules {
  /** Failures within the window that are none of requests; 0: nothing is taken out. */
  readonly failures: number;
  /** Failed requests within the window, when they are at least half of all; 0: they do not count. */
  readonly failedRequests: number;
  readonly window: number;
  readonly pause: number;
  readonly maxPause: number;
  /** Of the event loop, in long pieces; 0: it does not count. */
  readonly loopShare: number;
  /** Who has nearly all of the event loop for so long is out at once; 0: only the share counts. */
  readonly hogTime: number;
  readonly exempt: ReadonlySet<string>;
}

/** The modules of a host, as far as they are taken out and come back. */
export interface QuarantineModules {
  live(): readonly Instance[];
  /** The instance and all that depend on it. */
  leavingWith(instance: Instance): readonly Instance[];
  takeOut(instance: Instance, note: QuarantineNote): Promise<boolean>;
  /** Loads what was taken out with this one. Fails when that one fails. */
  readmit(root: string): Promise<void>;
  /** All that is out because of one. */
  with(root: string): readonly unknown[];
  renote(root: string, note: QuarantineNote): void;
}

export interface QuarantineWatchDeps {
  rules(): QuarantineRules;
  readonly modules: QuarantineModules;
  /** Makes a change of the running host, after those before it; `what` is for the record. */
  change(what: string, operation: () => Promise<void>): Promise<unknown>;
  /** A warning under the name of a module. */
  warn(instance: { readonly name: string; readonly host: string }, text: string): void;
  announce(event: QuarantineEvent): void;
  /** From 0 to 1; default: by chance. */
  random?(): number;
  /** Milliseconds for which this thread has had a processor; default: as the system says. */
  cpu?(): number;
}

/** What is remembered of a module that was out. */
interface Past {
  /** How often it was taken out without a good time between. */
  times: number;
  /** Seconds of the pause that it had last. */
  pause: number;
  since: number;
  reason: string;
  /** When it came back, milliseconds; undefined while it is out. */
  back: number | undefined;
  timer: NodeJS.Timeout | undefined;
}

/** The share of the event loop is that of so many seconds. */
const LOOP_WINDOW = 10;
/** Nearly all of the event loop. */
const HOG_SHARE = 0.75;
/** One slow request, and a collection of garbage in it, are no habit. */
const HOG_PIECES = 3;
/** It is warned of who has had nearly all of it for so much of the time after which it is out. */
const HOG_WARNING = 0.5;
/** Pauses are up to a fifth longer or shorter, so that modules that fell together do not rise together. */
const JITTER = 0.2;
/** Seconds before the worker of an isolated module is started again, the first time. */
const RESTART_PAUSE = 0.1;
/** Accounts are looked at so often within a window. */
const LOOKS = 10;

export class QuarantineWatch {
  readonly #deps: QuarantineWatchDeps;
  readonly #samples = new WeakMap<Instance, Sample[]>();
  readonly #past = new Map<string, Past>();
  /** Instances that are about to be taken out. */
  readonly #leaving = new WeakSet<Instance>();
  /** Of who is exempt, or nearly out, it is told once in a while, not each time. */
  readonly #told = new WeakSet<Instance>();
  #looking: NodeJS.Timeout | undefined;
  #stopped = false;

  constructor(deps: QuarantineWatchDeps) {
    this.#deps = deps;
  }

  /** Looks at the accounts from now on; also while nothing is taken out, since the options may change. */
  start(): void {
    const { window, hogTime } = this.#deps.rules();
    const seconds = Math.min(window, LOOP_WINDOW, ...(hogTime > 0 ? [hogTime] : []));
    this.#looking = setInterval(() => this.look(), (seconds / LOOKS) * 1000).unref();
  }

  /** Nothing is taken out or tried again any more. */
  stop(): void {
    this.#stopped = true;
    clearInterval(this.#looking);
    for (const { timer } of this.#past.values()) clearTimeout(timer);
  }

  /** Remembers the accounts of now, and takes out who held the loop for too long. */
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

  /** Takes out who holds the event loop, or warns of it. */
  #judge(instance: Instance, samples: readonly Sample[], sample: Sample): void {
    const { loopShare, hogTime } = this.#deps.rules();
    if (loopShare === 0) return;
    const held = (seconds: number) => heldSince(sampleAt(samples, sample.at - seconds * 1000), sample, seconds);
    const text = ({ share }: Held, seconds: number) =>
      `it held the event loop for ${Math.round(share * 100)} % of ${seconds} s, in pieces of over 50 ms`;
    const isHog = ({ share, pieces }: Held, most: number) => share > HOG_SHARE && pieces >= most;
    const long = held(LOOP_WINDOW);
    if (long.share > loopShare) this.take(instance, text(long, LOOP_WINDOW));
    if (hogTime === 0) return;
    const latest = held(hogTime);
    const soon = held(hogTime * HOG_WARNING);
    if (isHog(latest, HOG_PIECES)) this.take(instance, text(latest, hogTime));
    else if (isHog(soon, HOG_PIECES - 1) && this.#isNew(instance))
      this.#deps.warn(instance, `is taken out if it goes on: ${text(soon, hogTime * HOG_WARNING)}`);
  }

  /** It was not told of within a window. */
  #isNew(instance: Instance): boolean {
    if (this.#told.has(instance) || this.#leaving.has(instance)) return false;
    this.#told.add(instance);
    setTimeout(() => this.#told.delete(instance), this.#deps.rules().window * 1000).unref();
    return true;
  }

  /** A module has failed once more: takes it out when that is too often. */
  failed(instance: Instance, step: string, error: unknown): void {
    const { failures, failedRequests, window } = this.#deps.rules();
    if (failures === 0 || this.#stopped) return;
    const { usage } = instance;
    const before = sampleAt(this.#samples.get(instance) ?? [], performance.now() - window * 1000);
    const requests = usage.requests - before.requests;
    const failed = usage.failedRequests - before.failedRequests;
    const faults = usage.faults - before.faults;
    // One that comes back has to get ready.
    const isRelapse = step === "running module.ready" && this.#past.has(instance.key);
    const answersFail = failedRequests > 0 && failed >= failedRequests && failed * 2 >= requests;
    if (faults < failures && !answersFail && !isRelapse) return;
    const times = faults < failures ? `${failed} of its ${requests} requests failed` : `it failed ${faults} times`;
    const what = isRelapse ? "it did not get ready" : `${times} within ${window} s`;
    this.take(instance, `${what}, the last time ${step}: ${reasonOf(error)}`);
  }

  /** Takes out an instance, with those that depend on it; one that has ended by itself at any rate. False where it stays: it is exempt, or nothing is taken out. */
  take(instance: Instance, reason: string, { isDead = false } = {}): boolean {
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
      .change(`quarantine ${labelOf(instance)}`, () => this.#takeNow(instance, reason, isDead))
      .catch(() => undefined);
    return true;
  }

  /** An operator has taken the matter up: what was is forgotten, for all hosts or for one. */
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

  async #takeNow(instance: Instance, reason: string, isDead: boolean): Promise<void> {
    const { key, name, host } = instance;
    // Something else has brought it back: an operator, with a module that depends on it, or another configuration.
    if (this.#past.get(key)?.back === undefined) this.#forget(key);
    const past = this.#next(key, reason, isDead);
    const note = this.#note(past);
    if (!(await this.#deps.modules.takeOut(instance, note))) {
      this.#past.delete(key);
      return;
    }
    this.#deps.warn(instance, `is in quarantine for ${past.pause.toFixed(1)} s: ${reason}`);
    this.#deps.announce({ module: name, host, reason, next_try: note.nextTry as number });
    this.#wait(key, labelOf(instance), past);
  }

  /** The pause that follows the last one, or the first after a time without failures. */
  #next(key: string, reason: string, isDead = false): Past {
    const { pause, maxPause, window } = this.#deps.rules();
    const former = this.#past.get(key);
    const since = Date.now() / 1000;
    const well = former?.back === undefined ? 0 : (performance.now() - former.back) / 1000;
    const times = former === undefined || well > Math.max(window, former.pause) ? 0 : former.times + 1;
    const random = this.#deps.random?.() ?? Math.random();
    const jitter = 1 + JITTER * (2 * random - 1);
    // What has ended is started again at once, the first time.
    const long =
      isDead && times === 0 ? Math.min(RESTART_PAUSE, pause) : Math.min(maxPause, pause * 2 ** times * jitter);
    const begun = former?.back === undefined ? (former?.since ?? since) : since;
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
    modules.renote(key, { reason: past.reason, since: past.since, nextTry: undefined });
    // Its ready may fail before this returns.
    past.back = performance.now();
    try {
      await modules.readmit(key);
    } catch (error) {
      past.back = undefined;
      const next = this.#next(key, reasonOf(error));
      modules.renote(key, this.#note(next));
      this.#wait(key, label, next);
      throw error;
    }
  }
}

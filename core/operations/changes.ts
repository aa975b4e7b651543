/** Makes, records and announces all changes of a host. */
import type { Change } from "../types.ts";
import { type ChangeRequest, OpenChange, type Progress } from "./change.ts";

/** Number of changes that stay in memory; the audit file has more. */
const MAX_RECENT = 200;

export interface ChangesDeps {
  /** Removes secrets from texts. */
  mask(text: string): string;
  /** Called with each change when it has ended. */
  over(change: Change): void;
}

/** A change in progress. */
export interface ChangeInProgress {
  /** Settles as the change does. */
  readonly work: Promise<unknown>;
  /** Resolves to the record, when the change is in force or has failed. */
  readonly inForce: Promise<Change>;
}

export class Changes {
  readonly #deps: ChangesDeps;
  readonly #recent: Change[] = [];
  readonly #recording = new Set<Promise<void>>();

  constructor(deps: ChangesDeps) {
    this.#deps = deps;
  }

  /** Returns the latest changes that have ended, the oldest first. */
  recent(): readonly Change[] {
    return [...this.#recent];
  }

  /** Makes a change by calling `work`, which fails when the change fails. */
  make(request: ChangeRequest, work: (progress: Progress) => Promise<unknown>): ChangeInProgress {
    const change = new OpenChange(request);
    const { promise: inForce, resolve } = Promise.withResolvers<Change>();
    const progress: Progress = {
      step: (what) => change.step(what),
      inForce: () => resolve(change.done()),
      warn: (text) => change.warn(text),
      planned: (plan) => change.planned(plan),
    };
    const done = Promise.try(work, progress);
    const record = async (ended: Change | Promise<Change>) => {
      const whole = await ended;
      this.#store(whole);
      resolve(whole);
    };
    const recorded = (ended: Change | Promise<Change>) => {
      const recording = record(ended).finally(() => this.#recording.delete(recording));
      this.#recording.add(recording);
    };
    done.then(
      () => recorded(change.done()),
      (error: unknown) => recorded(change.failed(error, this.#deps.mask)),
    );
    return { inForce, work: done };
  }

  /** Records a change that took effect at once. */
  note(request: ChangeRequest): Change {
    const record = new OpenChange(request).done();
    this.#store(record);
    return record;
  }

  /** Resolves when all changes that have ended are recorded. */
  async settled(): Promise<void> {
    await Promise.all(this.#recording);
  }

  #store(record: Change): void {
    this.#recent.push(record);
    if (this.#recent.length > MAX_RECENT) this.#recent.shift();
    this.#deps.over(record);
  }
}

/** All changes of a host: made, recorded, announced. */
import type { Change } from "../types.ts";
import { type ChangeRequest, OpenChange, type Progress } from "./change.ts";

/** Changes that are kept for those who ask; the audit file has more. */
const MAX_RECENT = 200;

export interface ChangesDeps {
  /** Takes secrets out of texts. */
  mask(text: string): string;
  /** Hears of each change when it is over. */
  over(change: Change): void;
}

/** A change that is being made. */
export interface Made {
  /** Ends as the change itself does. */
  readonly work: Promise<unknown>;
  /** The record, when the change is in force or has come to nothing. */
  readonly inForce: Promise<Change>;
}

export class Changes {
  readonly #deps: ChangesDeps;
  readonly #recent: Change[] = [];
  readonly #recording = new Set<Promise<void>>();

  constructor(deps: ChangesDeps) {
    this.#deps = deps;
  }

  /** The latest that are over, the oldest first. */
  recent(): readonly Change[] {
    return [...this.#recent];
  }

  /** Makes a change by `work`, which fails when the change does. */
  make(request: ChangeRequest, work: (progress: Progress) => Promise<unknown>): Made {
    const change = new OpenChange(request);
    const { promise: inForce, resolve } = Promise.withResolvers<Change>();
    const progress: Progress = {
      step: (what) => change.step(what),
      inForce: () => resolve(change.done()),
      planned: (plan) => change.planned(plan),
    };
    const done = Promise.try(work, progress);
    const record = async (ended: Change | Promise<Change>) => {
      const whole = await ended;
      this.#keep(whole);
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

  /** Records a change that was in force at once. */
  note(request: ChangeRequest): Change {
    const record = new OpenChange(request).done();
    this.#keep(record);
    return record;
  }

  /** Resolves when those that have ended are recorded. */
  async settled(): Promise<void> {
    await Promise.all(this.#recording);
  }

  #keep(record: Change): void {
    this.#recent.push(record);
    if (this.#recent.length > MAX_RECENT) this.#recent.shift();
    this.#deps.over(record);
  }
}

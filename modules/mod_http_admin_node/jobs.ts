/** Long-running work: one list of all running jobs and the latest finished ones. */
import { HttpError, reasonOf } from "../../core/index.ts";
import type { AdminTopic } from "../../core/types.ts";
import type { Job, JobProgress } from "./types.ts";

/** Maximum number of jobs in the list, including the running ones. */
const MAX_JOBS = 100;
const MAX_RUNNING = 16;
/** Milliseconds between two events of one running job. */
const EVENT_INTERVAL_MS = 200;

export interface JobWork {
  readonly kind: Job["kind"];
  readonly what: string;
  readonly by: string;
  /** Allows at most one such job at a time. */
  readonly isSingle?: boolean;
  readonly total?: number;
  /** Rejects early when the signal aborts. */
  run(signal: AbortSignal, progress: (done: number, total?: number) => void): Promise<Job["result"]>;
}

interface Entry {
  job: Job;
  readonly stop: AbortController;
  readonly ended: Promise<unknown>;
  emittedAt: number;
}

export class Jobs {
  /** Jobs by id, the oldest first. */
  readonly #entries = new Map<string, Entry>();
  readonly #listeners = new Set<(job: Job) => void>();
  /** Makes ids differ from those before a restart. */
  readonly #prefix = Date.now().toString(36);
  #made = 0;

  /** Returns the jobs, the newest first. */
  list(): Job[] {
    return [...this.#entries.values()].map(({ job }) => job).reverse();
  }

  /** @throws {HttpError} 409 when such a job is running, 503 when too many are */
  start({ kind, what, by, total, isSingle, run }: JobWork): Job {
    const running = this.list().filter(({ state }) => state === "running");
    const same = isSingle === true ? running.find((job) => job.kind === kind) : undefined;
    if (same !== undefined) throw new HttpError(409, `This job is already running since ${same.began}: job ${same.id}`);
    if (running.length >= MAX_RUNNING)
      throw new HttpError(503, `There are ${MAX_RUNNING} jobs already: wait for one, or cancel it`, { expose: true });
    this.#made += 1;
    const id = `${this.#prefix}-${this.#made}`;
    const stop = new AbortController();
    const { promise: ended, resolve } = Promise.withResolvers<void>();
    const progress: JobProgress = { done: 0, ...(total === undefined ? {} : { total }), unit: "blocks" };
    const job: Job = { id, kind, what, by, state: "running", began: new Date().toISOString(), progress };
    const entry: Entry = { job, stop, ended, emittedAt: 0 };
    this.#entries.set(id, entry);
    this.#forget();
    this.#emit(entry);
    void this.#run(entry, run).then(resolve);
    return entry.job;
  }

  /** @throws {HttpError} 404, 409 */
  async cancel(id: string): Promise<Job> {
    const entry = this.#entries.get(id);
    if (entry === undefined) throw new HttpError(404, `There is no job ${id}`);
    if (entry.job.state !== "running") throw new HttpError(409, `The job ${id} has ended: ${entry.job.state}`);
    entry.stop.abort();
    await entry.ended;
    return entry.job;
  }

  readonly topic: AdminTopic = (emit) => {
    this.#listeners.add(emit);
    return () => this.#listeners.delete(emit);
  };

  /** Cancels all running jobs. */
  async close(): Promise<void> {
    const entries = [...this.#entries.values()];
    for (const { stop } of entries) stop.abort();
    await Promise.all(entries.map(({ ended }) => ended));
  }

  /** Never rejects. */
  async #run(entry: Entry, run: JobWork["run"]): Promise<void> {
    const { signal } = entry.stop;
    const moved = (done: number, total = entry.job.progress.total) => {
      entry.job = { ...entry.job, progress: { done, ...(total === undefined ? {} : { total }), unit: "blocks" } };
      if (performance.now() - entry.emittedAt >= EVENT_INTERVAL_MS) this.#emit(entry);
    };
    try {
      const result = await run(signal, moved);
      entry.job = { ...entry.job, state: "done", ...(result === undefined ? {} : { result }) };
    } catch (error) {
      const why = { error: reasonOf(error) };
      entry.job = { ...entry.job, ...(signal.aborted ? { state: "cancelled" } : { state: "failed", ...why }) };
    }
    entry.job = { ...entry.job, ended: new Date().toISOString() };
    this.#emit(entry);
  }

  #emit(entry: Entry): void {
    entry.emittedAt = performance.now();
    for (const emit of this.#listeners) emit(entry.job);
  }

  /** Removes the oldest finished jobs when there are too many. */
  #forget(): void {
    for (const [id, { job }] of this.#entries) {
      if (this.#entries.size <= MAX_JOBS) return;
      if (job.state !== "running") this.#entries.delete(id);
    }
  }
}

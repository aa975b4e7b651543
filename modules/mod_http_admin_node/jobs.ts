/** What takes long: one list of all that runs and the latest that are over. */
import { HttpError, reasonOf } from "../../core/index.ts";
import type { AdminTopic } from "../../core/types.ts";
import type { Job, JobProgress } from "./types.ts";

/** Jobs that are kept; those that run are among them. */
const MAX_JOBS = 100;
const MAX_RUNNING = 16;
/** Milliseconds between two events of one job that goes on. */
const TOLD_EVERY_MS = 200;

export interface JobWork {
  readonly kind: Job["kind"];
  readonly what: string;
  readonly by: string;
  /** At most one such job at a time. */
  readonly isSingle?: boolean;
  readonly total?: number;
  /** Ends early, rejecting, when the signal aborts. */
  run(signal: AbortSignal, progress: (done: number, total?: number) => void): Promise<Job["result"]>;
}

interface Entry {
  job: Job;
  readonly stop: AbortController;
  readonly ended: Promise<unknown>;
  toldAt: number;
}

export class Jobs {
  /** The oldest first. */
  readonly #entries = new Map<string, Entry>();
  readonly #tellers = new Set<(job: Job) => void>();
  /** Ids differ from those before a restart. */
  readonly #prefix = Date.now().toString(36);
  #made = 0;

  /** The newest first. */
  list(): Job[] {
    return [...this.#entries.values()].map(({ job }) => job).reverse();
  }

  /** @throws {HttpError} 409 where one such job runs, 503 where too many do */
  start({ kind, what, by, total, isSingle, run }: JobWork): Job {
    const running = this.list().filter(({ state }) => state === "running");
    const same = isSingle === true ? running.find((job) => job.kind === kind) : undefined;
    if (same !== undefined) throw new HttpError(409, `That is under way already, since ${same.began}: job ${same.id}`);
    if (running.length >= MAX_RUNNING)
      throw new HttpError(503, `There are ${MAX_RUNNING} jobs already: wait for one, or cancel it`, { expose: true });
    this.#made += 1;
    const id = `${this.#prefix}-${this.#made}`;
    const stop = new AbortController();
    const { promise: ended, resolve } = Promise.withResolvers<void>();
    const progress: JobProgress = { done: 0, ...(total === undefined ? {} : { total }), unit: "blocks" };
    const job: Job = { id, kind, what, by, state: "running", began: new Date().toISOString(), progress };
    const entry: Entry = { job, stop, ended, toldAt: 0 };
    this.#entries.set(id, entry);
    this.#forget();
    this.#tell(entry);
    void this.#run(entry, run).then(resolve);
    return entry.job;
  }

  /** @throws {HttpError} 404, 409 */
  async cancel(id: string): Promise<Job> {
    const entry = this.#entries.get(id);
    if (entry === undefined) throw new HttpError(404, `There is no job ${id}`);
    if (entry.job.state !== "running") throw new HttpError(409, `The job ${id} is over: ${entry.job.state}`);
    entry.stop.abort();
    await entry.ended;
    return entry.job;
  }

  readonly topic: AdminTopic = (tell) => {
    this.#tellers.add(tell);
    return () => this.#tellers.delete(tell);
  };

  /** Cancels all that run. */
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
      if (performance.now() - entry.toldAt >= TOLD_EVERY_MS) this.#tell(entry);
    };
    try {
      const result = await run(signal, moved);
      entry.job = { ...entry.job, state: "done", ...(result === undefined ? {} : { result }) };
    } catch (error) {
      const why = { error: reasonOf(error) };
      entry.job = { ...entry.job, ...(signal.aborted ? { state: "cancelled" } : { state: "failed", ...why }) };
    }
    entry.job = { ...entry.job, ended: new Date().toISOString() };
    this.#tell(entry);
  }

  #tell(entry: Entry): void {
    entry.toldAt = performance.now();
    for (const tell of this.#tellers) tell(entry.job);
  }

  /** The oldest that are over make room. */
  #forget(): void {
    for (const [id, { job }] of this.#entries) {
      if (this.#entries.size <= MAX_JOBS) return;
      if (job.state !== "running") this.#entries.delete(id);
    }
  }
}

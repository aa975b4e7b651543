/** Runs one backup at a time, and remembers the latest results. */
import { createMetrics, HttpError, reasonOf } from "../../core/index.ts";
import type { AdminTopic, BackupItem, Module, OwnedItem } from "../../core/types.ts";
import type { BackendSettings } from "./backends/open.ts";
import type { options } from "./options.ts";
import type { BackupModule, BackupProgress, BackupRequest, BackupState } from "./types.ts";

type OwnModule = Module<typeof options>;

/** Milliseconds between two events of one backup. */
const EVENT_INTERVAL_MS = 200;

/** The progress of a backup that has just begun. */
export const nothing: BackupProgress = { files: 0, bytes: 0, added: 0, total: 0 };

export class Backups implements BackupModule {
  readonly metrics = createMetrics({
    modhost_backup_runs_total: { kind: "counter", help: "Backups, by their result.", labels: ["result"] },
    modhost_backup_last_success_timestamp_seconds: {
      kind: "gauge",
      unit: "seconds",
      help: "When the latest backup of this process succeeded, in seconds since 1970; absent before.",
    },
    modhost_backup_last_bytes: { kind: "gauge", unit: "bytes", help: "Bytes of the files of the latest backup." },
    modhost_backup_last_added_bytes: { kind: "gauge", unit: "bytes", help: "Bytes that the latest backup wrote." },
  });
  readonly #module: OwnModule;
  readonly #items = new Set<OwnedItem<BackupItem>>();
  readonly #listeners = new Set<(state: BackupState) => void>();
  #state: BackupState = {};
  #stop: AbortController | undefined;
  #work: Promise<unknown> | undefined;
  #emittedAt = 0;

  constructor(module: OwnModule) {
    this.#module = module;
  }

  get state(): BackupState {
    return this.#state;
  }

  add(item: OwnedItem<BackupItem>): void {
    this.#items.add(item);
  }

  remove(item: OwnedItem<BackupItem>): void {
    this.#items.delete(item);
  }

  readonly topic: AdminTopic = (emit) => {
    this.#listeners.add(emit);
    return () => this.#listeners.delete(emit);
  };

  /** @throws {HttpError} 409 while another backup is running */
  async run(request: BackupRequest, { by = "program", signal, progress }: Parameters<BackupModule["run"]>[1]) {
    const { running } = this.#state;
    if (running !== undefined) throw new HttpError(409, `A backup has been running since ${running.began}`);
    const stop = new AbortController();
    this.#stop = stop;
    const began = new Date().toISOString();
    this.#become({ ...this.#state, running: { by, began, progress: nothing } });
    const settings = this.#settings(request);
    const work = this.#module.server.record(
      `back up to ${settings.to ?? "nowhere"}`,
      async () => {
        const { runBackup } = await import("./run.ts");
        const include = this.#module.get_option_array("backup_include");
        const deps = { module: this.#module as Module, items: [...this.#items], settings, include };
        return runBackup(deps, {
          keep: request.keep,
          signal: AbortSignal.any([signal, stop.signal]),
          progress: (now) => {
            progress(now);
            this.#become({ ...this.#state, running: { by, began, progress: now } }, EVENT_INTERVAL_MS);
          },
        });
      },
      { by },
    );
    this.#work = work.catch(() => undefined);
    try {
      const done = await work;
      this.metrics.add("modhost_backup_runs_total", 1, "done");
      this.metrics.set("modhost_backup_last_success_timestamp_seconds", Date.parse(done.time) / 1000);
      this.metrics.set("modhost_backup_last_bytes", done.bytes);
      this.metrics.set("modhost_backup_last_added_bytes", done.added);
      this.#become({ done });
      return done;
    } catch (error) {
      const isStopped = signal.aborted || stop.signal.aborted;
      this.metrics.add("modhost_backup_runs_total", 1, isStopped ? "cancelled" : "failed");
      const { done } = this.#state;
      const failed = { time: new Date().toISOString(), reason: isStopped ? "it was cancelled" : reasonOf(error) };
      this.#become({ ...(done === undefined ? {} : { done }), failed });
      throw error;
    } finally {
      this.#stop = undefined;
    }
  }

  /** Cancels the running backup; returns false when none is running. */
  async cancel(): Promise<boolean> {
    if (this.#stop === undefined) return false;
    this.#stop.abort(new Error("The backup was cancelled"));
    await this.#work;
    return true;
  }

  #settings({ to, key_file: keyFile }: BackupRequest): BackendSettings {
    const module = this.#module;
    return {
      to: to ?? module.get_option_string("backup_to"),
      key_file: keyFile ?? module.get_option_path("backup_key_file"),
      s3_endpoint: module.get_option_string("backup_s3_endpoint"),
      s3_region: module.get_option_string("backup_s3_region"),
      s3_key_id: module.get_option_string("backup_s3_key_id"),
      s3_secret: module.get_option_string("backup_s3_secret"),
    };
  }

  #become(state: BackupState, notBefore = 0): void {
    this.#state = state;
    if (performance.now() - this.#emittedAt < notBefore) return;
    this.#emittedAt = performance.now();
    for (const emit of this.#listeners) emit(state);
  }
}

/**
 * Records uploads. Consecutive uploads of one caller count as one change. Otherwise a folder of
 * 1,000 files would push everything else out of the record.
 */
import { reasonOf } from "../../core/index.ts";
import type { Server } from "../../core/types.ts";

/** Milliseconds without an upload after which a batch ends. */
const PAUSE_MS = 5000;
/** Number of files after which a batch is recorded although it continues. */
const MAX_FILES = 10_000;

interface Batch {
  readonly by: string;
  readonly server: Server;
  readonly first: string;
  files: number;
  bytes: number;
  failed: number;
  reason: string;
  active: number;
  timer: NodeJS.Timeout | undefined;
}

export class UploadRecords {
  readonly #batches = new Map<string, Batch>();

  /** Runs an upload as part of its caller's batch. */
  async during<T extends { readonly size: number }>(
    { path, by, server }: { readonly path: string; readonly by: string; readonly server: Server },
    upload: () => Promise<T>,
  ): Promise<T> {
    const batch = this.#batches.get(by) ?? this.#open({ path, by, server });
    clearTimeout(batch.timer);
    batch.active += 1;
    try {
      const uploaded = await upload();
      batch.files += 1;
      batch.bytes += uploaded.size;
      return uploaded;
    } catch (error) {
      batch.failed += 1;
      if (batch.reason === "") batch.reason = `${path}: ${reasonOf(error)}`.slice(0, 300);
      throw error;
    } finally {
      batch.active -= 1;
      if (batch.files + batch.failed >= MAX_FILES) this.#close(batch);
      if (batch.active === 0) batch.timer = setTimeout(() => this.#close(batch), PAUSE_MS).unref();
    }
  }

  /** Records all open batches. */
  close(): void {
    for (const batch of [...this.#batches.values()]) this.#close(batch);
  }

  #open({ path, by, server }: { path: string; by: string; server: Server }): Batch {
    const batch: Batch = {
      by,
      server,
      first: path,
      files: 0,
      bytes: 0,
      failed: 0,
      reason: "",
      active: 0,
      timer: undefined,
    };
    this.#batches.set(by, batch);
    return batch;
  }

  #close(batch: Batch): void {
    clearTimeout(batch.timer);
    if (this.#batches.get(batch.by) === batch) this.#batches.delete(batch.by);
    const { by, server, first, files, bytes, failed, reason } = batch;
    if (files + failed === 0) return;
    Object.assign(batch, { files: 0, bytes: 0, failed: 0, reason: "" });
    const count = `${files + failed} files, ${bytes} bytes, the first ${first}`;
    const what = files + failed === 1 ? `upload ${first} (${bytes} bytes)` : `upload ${count}`;
    const work = async () => {
      if (failed > 0) throw new Error(`${failed} of ${files + failed} were not stored; the first: ${reason}`);
    };
    void server.record(what, work, { by }).catch(() => undefined);
  }
}

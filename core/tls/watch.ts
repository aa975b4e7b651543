/** Watches the files of certificates, and switches to new ones that can be used. */
import { reasonOf } from "../util/errors.ts";
import { FileWatch } from "../util/file_watch.ts";
import type { Refreshed } from "./index.ts";

const STILL_MS = 200;
const POLL_MS = 60_000;

/**
 * Pauses between retries, about a minute in all, because a certificate may be written before its
 * key.
 */
const RETRY_MS: readonly number[] = [500, 1000, 2000, 4000, 8000, 15_000, 30_000];

export interface CertificateWatchDeps {
  /** Reads the files without using them. */
  look(): Promise<Refreshed>;
  /** Switches to the certificates that have changed. */
  swap(names: readonly string[]): Promise<unknown>;
  warn(text: string, ...values: unknown[]): void;
  readonly retries?: readonly number[];
  readonly poll?: number;
}

export class CertificateWatch {
  readonly #deps: CertificateWatchDeps;
  readonly #watch: FileWatch;
  #files: readonly string[] = [];

  constructor(deps: CertificateWatchDeps) {
    this.#deps = deps;
    this.#watch = new FileWatch({
      files: () => this.#files,
      changed: (files, mayRetry) => this.#changed(files, mayRetry),
      failed: deps.warn,
      still: STILL_MS,
      retries: deps.retries ?? RETRY_MS,
      poll: deps.poll ?? POLL_MS,
      reportsNew: true,
    });
  }

  /** Watches these files, and checks those that are new. */
  async follow(files: readonly string[]): Promise<void> {
    this.#files = files;
    await this.#watch.follow();
  }

  /** Stops watching for good. */
  close(): void {
    this.#watch.close();
  }

  async #changed(files: ReadonlySet<string>, mayRetry: boolean): Promise<Iterable<string>> {
    const { look, swap, warn } = this.#deps;
    try {
      const { changed, failed } = await look();
      if (changed.length > 0) await swap(changed);
      if (failed.length > 0 && mayRetry) return files;
      for (const { error } of failed) warn("The previous certificate stays in use: %s", reasonOf(error));
    } catch (error) {
      warn("Cannot check for new certificates: %s", reasonOf(error));
    }
    return [];
  }
}

/** Watches the files of certificates, and has those that can be used put in force. */
import { reasonOf } from "../util/errors.ts";
import { FileWatch } from "../util/file_watch.ts";
import type { Refreshed } from "./index.ts";

const STILL_MS = 200;
const POLL_MS = 60_000;

/** Whoever writes a certificate may have its key still to write. About a minute in all. */
const RETRY_MS: readonly number[] = [500, 1000, 2000, 4000, 8000, 15_000, 30_000];

export interface CertificateWatchDeps {
  /** Reads the files, and changes nothing. */
  look(): Promise<Refreshed>;
  /** Puts those that have changed in force. */
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
      tellsNew: true,
    });
  }

  /** Watches these files from now on, and looks into those that are new. */
  async follow(files: readonly string[]): Promise<void> {
    this.#files = files;
    await this.#watch.follow();
  }

  /** For good. */
  close(): void {
    this.#watch.close();
  }

  async #changed(files: ReadonlySet<string>, mayRetry: boolean): Promise<Iterable<string>> {
    const { look, swap, warn } = this.#deps;
    try {
      const { changed, failed } = await look();
      if (changed.length > 0) await swap(changed);
      if (failed.length > 0 && mayRetry) return files;
      for (const { error } of failed) warn("The former certificate is kept: %s", reasonOf(error));
    } catch (error) {
      warn("Looking for new certificates: %s", reasonOf(error));
    }
    return [];
  }
}

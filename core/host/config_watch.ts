/** Watches the config file, and applies it when it has changed and no write follows. */
import { ModhostError, reasonOf } from "../util/errors.ts";
import { FileWatch } from "../util/file_watch.ts";

const STILL_MS = 200;
/** Pauses after which a file that cannot be read is read again. */
const RETRY_MS: readonly number[] = [500, 1000, 2000];

const unreadable: ReadonlySet<string> = new Set(["CONFIG_UNREADABLE", "CONFIG_NOT_FOUND"]);

export interface ConfigWatchDeps {
  /** Applies the changed configuration; if it fails, nothing has changed. */
  apply(): Promise<unknown>;
  failed(text: string, ...values: unknown[]): void;
}

export class ConfigWatch {
  readonly #deps: ConfigWatchDeps;
  readonly #watch: FileWatch;
  #file: string | undefined;

  constructor(deps: ConfigWatchDeps) {
    this.#deps = deps;
    this.#watch = new FileWatch({
      files: () => (this.#file === undefined ? [] : [this.#file]),
      changed: (files, mayRetry) => this.#changed(files, mayRetry),
      failed: deps.failed,
      still: STILL_MS,
      retries: RETRY_MS,
    });
  }

  /** Watches this file, or none; replaces the previous one. */
  async follow(file: string | undefined): Promise<void> {
    if (file === this.#file) return;
    this.#file = file;
    await this.#watch.follow();
  }

  /** Stops watching for good. */
  close(): void {
    this.#file = undefined;
    this.#watch.close();
  }

  async #changed(files: ReadonlySet<string>, mayRetry: boolean): Promise<Iterable<string>> {
    try {
      await this.#deps.apply();
    } catch (error) {
      if (mayRetry && ModhostError.is(error) && unreadable.has(error.code)) return files;
      this.#deps.failed("Cannot apply the changed configuration: %s", reasonOf(error));
    }
    return [];
  }
}

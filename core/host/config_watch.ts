/** Watches the config file, and has it applied when it has changed and is still. */
import { readFile } from "node:fs/promises";
import { ModhostError, reasonOf } from "../util/errors.ts";
import { FileWatch } from "../util/file_watch.ts";

const STILL_MS = 200;
/** One that cannot be read is read again after each of these. */
const RETRY_MS: readonly number[] = [500, 1000, 2000];

const unreadable: ReadonlySet<string> = new Set(["CONFIG_UNREADABLE", "CONFIG_NOT_FOUND"]);

export interface ConfigWatchDeps {
  /** Puts what has changed in force; fails without having changed anything. */
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

  /** Watches this file from now on, or none. */
  async follow(file: string | undefined): Promise<void> {
    if (file === this.#file) return;
    this.#file = file;
    await this.#watch.follow();
  }

  /** For good. */
  close(): void {
    this.#file = undefined;
    this.#watch.close();
  }

  async #changed(files: ReadonlySet<string>, mayRetry: boolean): Promise<Iterable<string>> {
    try {
      for (const path of files) {
        const text = await readFile(path, "utf8").catch(() => "");
        // It has been truncated, to be written: an empty one would take every module away.
        if (text.trim() === "") throw new ModhostError("CONFIG_UNREADABLE", { path, reason: "it is empty" });
      }
      await this.#deps.apply();
    } catch (error) {
      if (mayRetry && ModhostError.is(error) && unreadable.has(error.code)) return files;
      this.#deps.failed("The changed configuration is not applied: %s", reasonOf(error));
    }
    return [];
  }
}

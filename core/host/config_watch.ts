/** Watches the config file, and tells when it has changed and is still. */
import { type FSWatcher, watch } from "node:fs";
import { readFile } from "node:fs/promises";
import { dirname } from "node:path";
import { ModhostError, reasonOf } from "../util/errors.ts";
import { fileState } from "../util/file_state.ts";

/** A file that has not changed for as long is not being written, milliseconds. */
const STILL_MS = 200;

/** One that cannot be read is read again after each of these, milliseconds: whoever writes it may not be done. */
const RETRY_MS: readonly number[] = [500, 1000, 2000];

const unreadable: ReadonlySet<string> = new Set(["CONFIG_UNREADABLE", "CONFIG_NOT_FOUND"]);

export interface ConfigWatchDeps {
  /** Puts what has changed in force; fails without having changed anything. */
  apply(): Promise<unknown>;
  failed(text: string, ...values: unknown[]): void;
}

export class ConfigWatch {
  readonly #deps: ConfigWatchDeps;
  #file: string | undefined;
  #watcher: FSWatcher | undefined;
  #timer: NodeJS.Timeout | undefined;
  /** The state of the file that was applied, or given up; and the one that was seen last. */
  #settled = "";
  #seen = "";
  #retries = 0;
  #isApplying = false;
  /** Something has happened while the file was looked at. */
  #isMissed = false;

  constructor(deps: ConfigWatchDeps) {
    this.#deps = deps;
  }

  /** Watches this file from now on, or none. */
  async follow(file: string | undefined): Promise<void> {
    if (file === this.#file) return;
    this.close();
    this.#file = file;
    if (file === undefined) return;
    this.#settled = (await fileState(file)).text;
    if (this.#file !== file) return;
    try {
      // The folder, since editors and tools put a new file in the place of the old one.
      this.#watcher = watch(dirname(file), { persistent: false }, () => this.#look(STILL_MS));
      this.#watcher.on("error", (error) => this.#deps.failed("%s is no longer watched: %s", file, reasonOf(error)));
    } catch (error) {
      this.#deps.failed("%s cannot be watched: %s", file, reasonOf(error));
    }
  }

  close(): void {
    this.#file = undefined;
    this.#watcher?.close();
    this.#watcher = undefined;
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #look(delay: number): void {
    if (this.#isApplying) this.#isMissed = true;
    if (this.#timer !== undefined || this.#isApplying) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      void this.#check();
    }, delay).unref();
  }

  async #check(): Promise<void> {
    const file = this.#file;
    if (file === undefined) return;
    this.#isApplying = true;
    this.#isMissed = false;
    let delay: number | undefined;
    try {
      delay = await this.#step(file);
    } finally {
      this.#isApplying = false;
    }
    if (this.#isMissed) delay ??= STILL_MS;
    if (this.#file === file && delay !== undefined) this.#look(delay);
  }

  /** Gives the milliseconds until the file is to be looked at again. */
  async #step(file: string): Promise<number | undefined> {
    const state = (await fileState(file)).text;
    if (state === this.#settled) return undefined;
    if (state !== this.#seen) {
      this.#seen = state;
      this.#retries = 0;
      return STILL_MS;
    }
    const failure = await this.#apply(file);
    if (failure === undefined) {
      this.#settled = state;
      // It may have been written while it was applied.
      return STILL_MS;
    }
    const isHalf = ModhostError.is(failure) && unreadable.has(failure.code);
    const retry = isHalf ? RETRY_MS[this.#retries] : undefined;
    this.#retries += 1;
    if (retry !== undefined) return retry;
    this.#settled = state;
    this.#deps.failed("The changed configuration is not applied: %s", reasonOf(failure));
    return STILL_MS;
  }

  async #apply(file: string): Promise<unknown> {
    try {
      const text = await readFile(file, "utf8").catch(() => "");
      // It has been truncated, to be written: an empty one would take every module away.
      if (text.trim() === "") throw new ModhostError("CONFIG_UNREADABLE", { path: file, reason: "it is empty" });
      await this.#deps.apply();
      return undefined;
    } catch (error) {
      return error;
    }
  }
}

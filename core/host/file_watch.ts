/** Watches files by their folders, and tells which have changed once they are still. */
import { type FSWatcher, watch } from "node:fs";
import { dirname } from "node:path";
import { reasonOf } from "../util/errors.ts";
import { fileState } from "../util/file_state.ts";

/** Nothing has happened in a folder for as long: whoever saves a file is done, milliseconds. */
const STILL_MS = 20;

/** Something happens all the time: the files are looked at all the same after as long, milliseconds. */
const MAX_WAIT_MS = 200;

/** A file that is gone or empty is being written by most editors: it counts as changed after as many looks. */
const MAX_LOOKS = 5;
const LOOK_MS = 40;

export interface FileWatchDeps {
  /** The files to watch, as of now. Those that do not exist are waited for. */
  files(): ReadonlySet<string>;
  /** These have changed. Nothing is told until it is over, and then whatever has changed meanwhile. */
  changed(files: ReadonlySet<string>): Promise<void>;
  failed(text: string, ...values: unknown[]): void;
}

/** Costs nothing while nothing happens in the folders of its files: the system tells. */
export class FileWatch {
  readonly #deps: FileWatchDeps;
  readonly #watchers = new Map<string, FSWatcher>();
  /** The state of each file that was told of last, or that it began with. */
  readonly #states = new Map<string, string>();
  /** How often a file was seen gone or empty. */
  readonly #looks = new Map<string, number>();
  #timer: NodeJS.Timeout | undefined;
  #since = 0;
  #isBusy = false;
  /** Something has happened while the files were looked at. */
  #isMissed = false;
  #isClosed = false;

  constructor(deps: FileWatchDeps) {
    this.#deps = deps;
  }

  /** Watches what `files` says now: to be called when that has changed. What a new file is now counts as unchanged. */
  async follow(): Promise<void> {
    const files = this.#deps.files();
    for (const file of this.#states.keys()) if (!files.has(file)) this.#states.delete(file);
    const fresh = [...files].filter((file) => !this.#states.has(file));
    for (const file of fresh) this.#states.set(file, "");
    const folders = new Set([...files].map(dirname));
    for (const [folder, watcher] of this.#watchers) {
      if (folders.has(folder)) continue;
      watcher.close();
      this.#watchers.delete(folder);
    }
    for (const folder of folders) this.#watch(folder);
    const read = async (file: string) => {
      const { text } = await fileState(file);
      if (this.#states.get(file) === "") this.#states.set(file, text);
    };
    await Promise.all(fresh.map(read));
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    for (const watcher of this.#watchers.values()) watcher.close();
    this.#watchers.clear();
  }

  #watch(folder: string): void {
    if (this.#isClosed || this.#watchers.has(folder)) return;
    try {
      // The folder, since editors put a new file in the place of the old one.
      const watcher = watch(folder, { persistent: false }, () => this.#look());
      watcher.on("error", (error) => {
        this.#watchers.delete(folder);
        watcher.close();
        this.#deps.failed("%s is no longer watched: %s", folder, reasonOf(error));
      });
      this.#watchers.set(folder, watcher);
    } catch (error) {
      const isMissing = error instanceof Error && "code" in error && error.code === "ENOENT";
      // Its parent tells when it comes.
      if (isMissing && dirname(folder) !== folder) this.#watch(dirname(folder));
      else this.#deps.failed("%s cannot be watched: %s", folder, reasonOf(error));
    }
  }

  #look(delay = STILL_MS): void {
    if (this.#isBusy) {
      this.#isMissed = true;
      return;
    }
    const now = performance.now();
    if (this.#timer === undefined) this.#since = now;
    else if (now - this.#since > MAX_WAIT_MS) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      void this.#check();
    }, delay).unref();
  }

  async #check(): Promise<void> {
    this.#isBusy = true;
    this.#isMissed = false;
    let unsettled = false;
    try {
      const changed = new Set<string>();
      const look = async (file: string, known: string) => {
        const { text, size } = await fileState(file);
        if (text === known) this.#looks.delete(file);
        else if (this.#isBeingWritten(file, size)) unsettled = true;
        else {
          this.#states.set(file, text);
          changed.add(file);
        }
      };
      await Promise.all([...this.#states].map(([file, known]) => look(file, known)));
      if (changed.size > 0 && !this.#isClosed) await this.#deps.changed(changed);
      await this.follow();
    } catch (error) {
      this.#deps.failed("The watched files cannot be looked at: %s", reasonOf(error));
    } finally {
      this.#isBusy = false;
    }
    if (this.#isClosed) return;
    if (unsettled) this.#look(LOOK_MS);
    else if (this.#isMissed) this.#look();
  }

  #isBeingWritten(file: string, size: number): boolean {
    const looks = (this.#looks.get(file) ?? 0) + 1;
    const isSeen = size > 0 || looks > MAX_LOOKS;
    if (isSeen) this.#looks.delete(file);
    else this.#looks.set(file, looks);
    return !isSeen;
  }
}

/** Watches files by their folders, and tells which have changed once they are still. */
import { type FSWatcher, watch } from "node:fs";
import { realpath, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { reasonOf } from "./errors.ts";
import { fileState } from "./file_state.ts";

export interface FileWatchDeps {
  /** The files to watch, as of now. Those that do not exist are waited for. */
  files(): Iterable<string>;
  /**
   * These have changed and are still. Gives those that cannot be used as they are, while there are retries: they are told
   * of again. Until it is over nothing is told, and then whatever has changed meanwhile.
   */
  changed(files: ReadonlySet<string>, mayRetry: boolean): Promise<Iterable<string>>;
  failed(text: string, ...values: unknown[]): void;
  /** A file that has not changed for as long is not being written, milliseconds. */
  readonly still: number;
  /**
   * Pauses after which files that are missing or empty, or that `changed` gives back, are looked at again, milliseconds:
   * whoever writes them may not be done. They begin anew when any of the files changes.
   */
  readonly retries: readonly number[];
  /** Where the system may tell nothing, as of network file systems, the files are looked at as often, milliseconds. */
  readonly poll?: number;
  /** What a new one of the files is when it is followed counts as a change. */
  readonly tellsNew?: boolean;
}

interface Watched {
  /** Its state that was told of last, or that it began with. */
  told: string;
  seen: string;
}

/** The clock of file systems is behind that of programs by a tick of the system, on a busy one by several; milliseconds. */
const FILE_CLOCK_MS = 50;

/** Where a folder cannot be watched, its files are looked at as often, milliseconds. */
const UNWATCHED_POLL_MS = 2000;

/** Costs nothing while nothing happens in the folders of its files, but for the polls. */
export class FileWatch {
  readonly #deps: FileWatchDeps;
  readonly #files = new Map<string, Watched>();
  /** By path and identity of the folder. */
  readonly #watchers = new Map<string, FSWatcher>();
  /** Folders that cannot be watched, which was told. */
  #unwatched = new Set<string>();
  #timer: NodeJS.Timeout | undefined;
  /** When the timer ends, by the clock of `performance`. */
  #due = 0;
  #poll: NodeJS.Timeout | undefined;
  #retries = 0;
  /** Files that wait for a retry are not told of before. */
  #retryAt = 0;
  #isBusy = false;
  /** Something has happened while the files were looked at. */
  #isMissed = false;
  #isClosed = false;
  /** Of several looks at the folders, the last one holds. */
  #round = 0;

  constructor(deps: FileWatchDeps) {
    this.#deps = deps;
  }

  /**
   * Watches what `files` says now: to be called when that has changed. New ones that were written after `since`,
   * milliseconds since 1970, count as changed, and so do those of the moment before.
   */
  async follow(since = Number.POSITIVE_INFINITY): Promise<void> {
    const { files, poll, tellsNew } = this.#deps;
    const wanted = new Set(files());
    for (const file of this.#files.keys()) if (!wanted.has(file)) this.#files.delete(file);
    const fresh = [...wanted].filter((file) => !this.#files.has(file));
    if (tellsNew === true) for (const file of fresh) this.#files.set(file, { told: "", seen: "" });
    if (poll !== undefined && wanted.size > 0) this.#pollEach(poll);
    await this.#watchFolders();
    if (tellsNew === true) {
      if (fresh.length > 0) this.#look(0);
      return;
    }
    const read = async (file: string) => {
      const { text, written } = await fileState(file);
      const watched = this.#files.get(file) ?? { told: text, seen: text };
      this.#files.set(file, watched);
      if (written <= since - FILE_CLOCK_MS) return;
      // Also where somebody else who followed meanwhile, and knew of no moment, was first.
      watched.told = "";
      this.#look(0);
    };
    await Promise.all(fresh.map(read));
  }

  /** For good. */
  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    clearInterval(this.#poll);
    for (const watcher of this.#watchers.values()) watcher.close();
    this.#watchers.clear();
  }

  #pollEach(milliseconds: number): void {
    if (!this.#isClosed) this.#poll ??= setInterval(() => this.#look(0), milliseconds).unref();
  }

  #look(delay: number): void {
    if (this.#isClosed) return;
    if (this.#isBusy) {
      this.#isMissed = true;
      return;
    }
    const due = performance.now() + delay;
    if (this.#timer !== undefined && this.#due <= due) return;
    clearTimeout(this.#timer);
    this.#due = due;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      void this.#check();
    }, delay).unref();
  }

  async #check(): Promise<void> {
    this.#isBusy = true;
    this.#isMissed = false;
    let delay = Number.POSITIVE_INFINITY;
    try {
      await this.#watchFolders();
      delay = await this.#step();
      await this.follow();
    } catch (error) {
      this.#deps.failed("The watched files cannot be looked at: %s", reasonOf(error));
    } finally {
      this.#isBusy = false;
    }
    if (this.#isMissed) delay = Math.min(delay, this.#deps.still);
    if (delay !== Number.POSITIVE_INFINITY) this.#look(delay);
  }

  /** Gives the milliseconds until the files are to be looked at again. */
  async #step(): Promise<number> {
    const { still, retries } = this.#deps;
    const ready = new Map<string, { readonly watched: Watched; readonly isEmpty: boolean }>();
    let isMoving = false;
    const look = async (file: string, watched: Watched) => {
      const { text, size } = await fileState(file);
      if (text === watched.seen && text !== watched.told) ready.set(file, { watched, isEmpty: size === 0 });
      isMoving ||= text !== watched.seen;
      watched.seen = text;
    };
    await Promise.all([...this.#files].map(([file, watched]) => look(file, watched)));
    if (isMoving) this.#begin();
    const early = this.#retryAt - performance.now();
    if (ready.size === 0 || early > 0) return isMoving ? still : ready.size > 0 ? early : Number.POSITIVE_INFINITY;
    const pause = retries[this.#retries];
    const again = new Set<string>();
    const changed = new Set<string>();
    for (const [file, { watched, isEmpty }] of ready) {
      if (isEmpty && pause !== undefined) again.add(file);
      else changed.add(file);
      watched.told = watched.seen;
    }
    if (changed.size > 0 && !this.#isClosed) {
      for (const file of await this.#deps.changed(changed, pause !== undefined)) again.add(file);
    }
    if (again.size === 0 || pause === undefined) {
      this.#begin();
      return isMoving ? still : Number.POSITIVE_INFINITY;
    }
    for (const file of again) {
      const watched = this.#files.get(file);
      if (watched !== undefined) watched.told = "";
    }
    this.#retries += 1;
    this.#retryAt = performance.now() + pause;
    return isMoving ? still : pause;
  }

  /** Retries begin anew. */
  #begin(): void {
    this.#retries = 0;
    this.#retryAt = 0;
  }

  /**
   * Watches the folders of the files and of what links lead to, since whoever saves or renews puts new files, or new links,
   * in the place of old ones; and in the place of a folder that is missing the nearest one above it.
   */
  async #watchFolders(): Promise<void> {
    const round = ++this.#round;
    const wanted = new Map<string, string>();
    const add = async (folder: string): Promise<void> => {
      const found = await stat(folder).catch(() => undefined);
      if (found !== undefined) wanted.set(`${found.dev} ${found.ino} ${folder}`, folder);
      else if (dirname(folder) !== folder) await add(dirname(folder));
    };
    const files = [...this.#deps.files()];
    const led = await Promise.all(files.map((file) => realpath(file).catch(() => file)));
    await Promise.all([...new Set([...files, ...led].map(dirname))].map(add));
    if (this.#isClosed || round !== this.#round) return;
    for (const [key, watcher] of this.#watchers) {
      if (wanted.has(key)) continue;
      watcher.close();
      this.#watchers.delete(key);
    }
    const unwatched = new Set<string>();
    for (const [key, folder] of wanted) if (!this.#watchers.has(key)) this.#watch(key, folder, unwatched);
    this.#unwatched = unwatched;
    if (this.#deps.poll !== undefined) return;
    if (unwatched.size > 0) return this.#pollEach(UNWATCHED_POLL_MS);
    clearInterval(this.#poll);
    this.#poll = undefined;
  }

  #watch(key: string, folder: string, unwatched: Set<string>): void {
    const { still, poll, failed } = this.#deps;
    try {
      const watcher = watch(folder, { persistent: false }, () => this.#look(still));
      watcher.on("error", () => {
        watcher.close();
        this.#watchers.delete(key);
        this.#look(still);
      });
      this.#watchers.set(key, watcher);
    } catch (error) {
      unwatched.add(folder);
      // With polls, what happens there is seen a little later.
      if (poll === undefined && !this.#unwatched.has(folder))
        failed("%s cannot be watched, and is looked at every 2 s: %s", folder, reasonOf(error));
    }
  }
}

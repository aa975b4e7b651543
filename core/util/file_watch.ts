/** Watches files through their folders, and reports changed files once no more writes follow. */
import { type FSWatcher, watch } from "node:fs";
import { realpath, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { reasonOf } from "./errors.ts";
import { fileState } from "./file_state.ts";

export interface FileWatchDeps {
  /** Returns the files to watch now. Missing files are watched for their creation. */
  files(): Iterable<string>;
  /**
   * Called with the files that have changed and are complete. Resolves to the files that cannot be
   * used yet; these are reported again while there are retries. Nothing else is reported until it
   * resolves; afterwards everything that has changed meanwhile is.
   */
  changed(files: ReadonlySet<string>, mayRetry: boolean): Promise<Iterable<string>>;
  failed(text: string, ...values: unknown[]): void;
  /** Milliseconds without a change after which a file counts as complete. */
  readonly still: number;
  /**
   * Pauses in milliseconds after which files are checked again that are missing or empty, or that
   * `changed` returned, because somebody may still be writing them. They start again when any of
   * the files changes.
   */
  readonly retries: readonly number[];
  /**
   * Milliseconds between polls, for file systems that report no changes, such as network file
   * systems.
   */
  readonly poll?: number;
  /** Whether a file that is newly watched counts as changed. */
  readonly reportsNew?: boolean;
}

interface Watched {
  /** The last state that was reported, or the first one. */
  reported: string;
  seen: string;
}

/**
 * Milliseconds that the clock of a file system may be behind that of programs: one tick of the
 * system, or several on a busy one.
 */
const FILE_CLOCK_MS = 50;

/** Milliseconds between polls of folders that cannot be watched. */
const UNWATCHED_POLL_MS = 2000;

/** Watches files. It costs nothing while nothing happens in their folders, except for polls. */
export class FileWatch {
  readonly #deps: FileWatchDeps;
  readonly #files = new Map<string, Watched>();
  /** Watchers by path and identity of the folder. */
  readonly #watchers = new Map<string, FSWatcher>();
  /** Folders that cannot be watched and were reported. */
  #unwatched = new Set<string>();
  #timer: NodeJS.Timeout | undefined;
  /** When the timer ends, by `performance.now()`. */
  #due = 0;
  #poll: NodeJS.Timeout | undefined;
  #retries = 0;
  /** Before this time, files that wait for a retry are not reported. */
  #retryAt = 0;
  #isBusy = false;
  /** Set when a change occurs during a check. */
  #isMissed = false;
  #isClosed = false;
  /** Counts updates of the folders; only the latest one takes effect. */
  #round = 0;

  constructor(deps: FileWatchDeps) {
    this.#deps = deps;
  }

  /**
   * Watches the files that `files` returns now; call it when these have changed. New files that
   * were written after `since` (milliseconds since 1970), or just before it, count as changed.
   */
  async follow(since = Number.POSITIVE_INFINITY): Promise<void> {
    const { files, poll, reportsNew } = this.#deps;
    const wanted = new Set(files());
    for (const file of this.#files.keys()) if (!wanted.has(file)) this.#files.delete(file);
    const fresh = [...wanted].filter((file) => !this.#files.has(file));
    if (reportsNew === true) for (const file of fresh) this.#files.set(file, { reported: "", seen: "" });
    if (poll !== undefined && wanted.size > 0) this.#pollEach(poll);
    await this.#watchFolders();
    if (reportsNew === true) {
      if (fresh.length > 0) this.#look(0);
      return;
    }
    const read = async (file: string) => {
      const { text, written } = await fileState(file);
      const watched = this.#files.get(file) ?? { reported: text, seen: text };
      this.#files.set(file, watched);
      if (written <= since - FILE_CLOCK_MS) return;
      // Another call without `since` may have added the file meanwhile.
      watched.reported = "";
      this.#look(0);
    };
    await Promise.all(fresh.map(read));
  }

  /** Stops watching for good. */
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
      this.#deps.failed("Cannot check the watched files: %s", reasonOf(error));
    } finally {
      this.#isBusy = false;
    }
    if (this.#isMissed) delay = Math.min(delay, this.#deps.still);
    if (delay !== Number.POSITIVE_INFINITY) this.#look(delay);
  }

  /** Checks the files; resolves to the milliseconds until the next check. */
  async #step(): Promise<number> {
    const { still, retries } = this.#deps;
    const ready = new Map<string, { readonly watched: Watched; readonly isEmpty: boolean }>();
    let isMoving = false;
    const look = async (file: string, watched: Watched) => {
      const { text, size } = await fileState(file);
      if (text === watched.seen && text !== watched.reported) ready.set(file, { watched, isEmpty: size === 0 });
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
      watched.reported = watched.seen;
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
      if (watched !== undefined) watched.reported = "";
    }
    this.#retries += 1;
    this.#retryAt = performance.now() + pause;
    return isMoving ? still : pause;
  }

  /** Starts the retries again from the first pause. */
  #begin(): void {
    this.#retries = 0;
    this.#retryAt = 0;
  }

  /**
   * Watches the folders of the files and of link targets, because editors and renewals replace
   * files or links with new ones. For a missing folder it watches the nearest folder above.
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
      // Polls detect the changes in this folder a little later.
      if (poll === undefined && !this.#unwatched.has(folder))
        failed("Cannot watch %s, so it is checked every 2 s: %s", folder, reasonOf(error));
    }
  }
}

/** Watches the files of certificates, and tells when they have changed and can be used. */
import { type FSWatcher, watch } from "node:fs";
import { realpath, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { reasonOf } from "../util/errors.ts";
import { fileState } from "../util/file_state.ts";
import type { Refreshed } from "./index.ts";

/** Files that have not changed for as long are not being written, milliseconds. */
const STILL_MS = 200;

/** Network file systems, and links to other folders, tell nothing: the files are looked at as often, milliseconds. */
const POLL_MS = 60_000;

/**
 * A certificate that cannot be used is looked at again after each of these, milliseconds: whoever writes it may not be
 * done, or has written the certificate and not yet its key. About a minute in all.
 */
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
  #files: readonly string[] = [];
  /** By path and identity of the folder. */
  readonly #watchers = new Map<string, FSWatcher>();
  #timer: NodeJS.Timeout | undefined;
  /** When the timer ends, by the clock of `performance`. */
  #due = 0;
  #poll: NodeJS.Timeout | undefined;
  /** The state of the files that was looked into, or given up; and the one that was seen last. */
  #settled: string | undefined;
  #seen: string | undefined;
  #retries = 0;
  /** Not before this are the same files read again. */
  #retryAt = 0;
  #isChecking = false;
  /** Something has happened while the files were looked at. */
  #isMissed = false;

  constructor(deps: CertificateWatchDeps) {
    this.#deps = deps;
  }

  /** Watches these files from now on, and looks into them once at the beginning. */
  follow(files: readonly string[]): void {
    this.close();
    this.#files = [...new Set(files)];
    if (this.#files.length === 0) return;
    this.#settled = undefined;
    this.#poll = setInterval(() => this.#look(0), this.#deps.poll ?? POLL_MS).unref();
    this.#look(0);
  }

  close(): void {
    this.#files = [];
    for (const watcher of this.#watchers.values()) watcher.close();
    this.#watchers.clear();
    clearTimeout(this.#timer);
    this.#timer = undefined;
    clearInterval(this.#poll);
  }

  #look(delay: number): void {
    if (this.#isChecking) {
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
    const files = this.#files;
    this.#isChecking = true;
    this.#isMissed = false;
    let delay: number | undefined;
    try {
      await this.#watchFolders(files);
      delay = await this.#step(files);
    } catch (error) {
      if (files === this.#files) this.#deps.warn("Looking for new certificates: %s", reasonOf(error));
    } finally {
      this.#isChecking = false;
    }
    if (this.#isMissed) delay = Math.min(delay ?? STILL_MS, STILL_MS);
    if (this.#files.length > 0 && delay !== undefined) this.#look(delay);
  }

  /** Gives the milliseconds until the files are to be looked at again. */
  async #step(files: readonly string[]): Promise<number | undefined> {
    const state = (await Promise.all(files.map(fileState))).map(({ text }) => text).join("\n");
    if (files !== this.#files) return 0;
    if (state === this.#settled) return undefined;
    if (state !== this.#seen) {
      this.#seen = state;
      this.#retries = 0;
      this.#retryAt = 0;
      return STILL_MS;
    }
    const early = this.#retryAt - performance.now();
    if (early > 0) return early;
    const { changed, failed } = await this.#deps.look();
    if (files !== this.#files) return 0;
    if (changed.length > 0) await this.#deps.swap(changed);
    const retry = failed.length === 0 ? undefined : (this.#deps.retries ?? RETRY_MS)[this.#retries];
    this.#retries += 1;
    if (retry !== undefined) {
      this.#retryAt = performance.now() + retry;
      return retry;
    }
    for (const { error } of failed) this.#deps.warn("The former certificate is kept: %s", reasonOf(error));
    this.#settled = state;
    // They may have been written while they were read.
    return STILL_MS;
  }

  /** Those of the files and those that links lead to: whoever renews puts new files, or new links, in the place of old ones. */
  async #watchFolders(files: readonly string[]): Promise<void> {
    const folders = new Set<string>();
    for (const file of files) {
      folders.add(dirname(file));
      folders.add(dirname(await realpath(file).catch(() => file)));
    }
    const wanted = new Map<string, string>();
    for (const folder of folders) {
      const found = await stat(folder).catch(() => undefined);
      if (found !== undefined) wanted.set(`${found.dev} ${found.ino} ${folder}`, folder);
    }
    if (files !== this.#files) return;
    for (const [key, watcher] of this.#watchers) {
      if (wanted.has(key)) continue;
      watcher.close();
      this.#watchers.delete(key);
    }
    for (const [key, folder] of wanted) {
      if (this.#watchers.has(key)) continue;
      try {
        const watcher = watch(folder, { persistent: false }, () => this.#look(STILL_MS));
        watcher.on("error", () => {
          watcher.close();
          this.#watchers.delete(key);
        });
        this.#watchers.set(key, watcher);
      } catch {
        // The system watches no more folders: what happens there is seen a little later.
      }
    }
  }
}

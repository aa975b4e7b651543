/**
 * Watches the folders of denylists: changes apply shortly after a list was added, changed or
 * removed.
 */
import { type FSWatcher, watch } from "node:fs";
import { realpath, stat } from "node:fs/promises";
import { basename, dirname } from "node:path";
import type { Denylists } from "./denylists.ts";

/**
 * Milliseconds from a change until the lists are read. A program may write a file in several steps.
 */
const SETTLE_MS = 200;

type FollowedLists = Pick<Denylists, "folders" | "files" | "reread">;

/** A folder, or its nearest existing parent if the folder is missing. */
interface WatchedFolder {
  readonly key: string;
  readonly folder: string;
  /** The only name in the folder whose changes matter; undefined for all names. */
  readonly name: string | undefined;
}

/** Starts watching and returns a function that stops it. The watchers keep no process running. */
export function watchDenylists(lists: FollowedLists, warn: (sentence: string) => void): () => void {
  const watchers = new Map<string, FSWatcher>();
  let timer: NodeJS.Timeout | undefined;
  let isOver = false;
  const plan = () => {
    if (!isOver) timer ??= setTimeout(() => void look(), SETTLE_MS).unref();
  };
  const drop = (key: string) => {
    watchers.get(key)?.close();
    watchers.delete(key);
  };
  const add = ({ key, folder, name }: WatchedFolder): boolean => {
    try {
      const watcher = watch(folder, { persistent: false }, (_, changed) => {
        if (name === undefined || changed === null || changed === name) plan();
      });
      watcher.on("error", () => {
        drop(key);
        plan();
      });
      watchers.set(key, watcher);
      return true;
    } catch (error) {
      warn(
        `Cannot watch ${folder}, so run \`modhost reload\` after you change denylists there: ${(error as Error).message}`,
      );
      return false;
    }
  };
  /** Watches the current folders. Returns whether any of them is new. */
  const follow = async (): Promise<boolean> => {
    const wanted = new Map<string, WatchedFolder>();
    const want = async (folder: string, name?: string) => {
      const found = await nearest(folder, name);
      wanted.set(found.key, found);
    };
    for (const folder of lists.folders) await want(folder);
    for (const file of lists.files) {
      const led = await realpath(file).catch(() => file);
      if (led !== file) await want(dirname(led), basename(led));
    }
    if (isOver) return false;
    for (const key of watchers.keys()) if (!wanted.has(key)) drop(key);
    const further = [...wanted.values()].filter(({ key }) => !watchers.has(key));
    return further.map(add).includes(true);
  };
  const look = async () => {
    timer = undefined;
    // Watch first, so that changes while the lists are read are not missed.
    await follow();
    await lists.reread();
    // A list may be a link to a file elsewhere, which may have changed since it was read.
    if (await follow()) plan();
  };
  plan();
  return () => {
    isOver = true;
    clearTimeout(timer);
    for (const key of watchers.keys()) drop(key);
  };
}

async function nearest(folder: string, name?: string): Promise<WatchedFolder> {
  const found = await stat(folder).catch(() => undefined);
  if (found === undefined && dirname(folder) !== folder) return nearest(dirname(folder), basename(folder));
  return { key: `${found?.dev} ${found?.ino} ${folder} ${name}`, folder, name };
}

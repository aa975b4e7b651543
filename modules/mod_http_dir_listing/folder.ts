/**
 * Reads a folder of any size: it keeps only the entries that are shown, and yields to other work in
 * between.
 */
import type { Dirent, Stats } from "node:fs";
import { opendir, realpath, stat } from "node:fs/promises";
import { createRequire } from "node:module";
import { join, sep } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Entry } from "./formats.ts";

const require = createRequire(import.meta.url);

/**
 * The function of serve-index that describes a list of names. Its types only declare the
 * middleware.
 */
interface ServeIndex {
  html(
    request: undefined,
    response: { setHeader(): void; end(): void },
    names: string[],
    failed: (error: Error) => void,
    directory: string,
    showUp: boolean,
    icons: boolean,
    path: string,
    view: string,
    template: (
      locals: { readonly fileList: readonly { readonly name: string; readonly stat: Stats | null }[] },
      done: (error: null, page: string) => void,
    ) => void,
    stylesheet: string,
  ): void;
}

/** serve-index is loaded with the first listing, because loading it takes a tenth of a start. */
const library = (): ServeIndex => require("serve-index");

/** Number of names that are compared or looked up before other work runs. */
const PIECE = 500;

export interface Folder {
  readonly path: string;
  /** Links that lead out of this folder are not shown. */
  readonly root: string;
  readonly hidden: boolean;
}

/** The shown part of a folder. */
export interface Contents {
  /** Folders first, each group by name. */
  readonly entries: readonly Entry[];
  /** The number of entries that could be shown. */
  readonly total: number;
}

/** A name with the facts that determine its position in the order. */
interface Candidate {
  readonly name: string;
  readonly folded: string;
  readonly isFolder: boolean;
}

const { compare } = new Intl.Collator();

/** Compares two names in the order of serve-index. */
function inOrder(one: Candidate, other: Candidate): number {
  return (
    Number(other.isFolder) - Number(one.isFolder) ||
    compare(one.folded, other.folded) ||
    (one.name < other.name ? -1 : Number(one.name > other.name))
  );
}

/** Returns the first `limit` entries of the folder. */
export async function readFolder(folder: Folder, limit: number): Promise<Contents> {
  const { first, total } = await firstNames(folder, limit);
  const entries: Entry[] = [];
  for (let at = 0; at < first.length; at += PIECE) {
    const names = first.slice(at, at + PIECE).map(({ name }) => name);
    for (const entry of await described(folder.path, names)) entries.push(entry);
  }
  // Entries that were removed in the meantime are neither shown nor counted.
  return { entries, total: total - (first.length - entries.length) };
}

/**
 * Returns the files and folders whose names may be shown. A link is included only if it leads to
 * something that is served.
 */
async function firstNames(folder: Folder, limit: number): Promise<{ first: readonly Candidate[]; total: number }> {
  let first: Candidate[] = [];
  let fresh: Candidate[] = [];
  let total = 0;
  const take = () => {
    first = merge(first, fresh.sort(inOrder), limit);
    fresh = [];
  };
  for await (const entry of await opendir(folder.path, { bufferSize: PIECE })) {
    const { name } = entry;
    if ((name.startsWith(".") && !folder.hidden) || isSpecial(entry)) continue;
    const last = first.length < limit ? undefined : first[limit - 1];
    const folded = name.toLocaleLowerCase();
    // Following a link is slow, so links that would not be among the first names anyway are not
    // followed.
    const isShown = last === undefined || inOrder({ name, folded, isFolder: !entry.isFile() }, last) < 0;
    const isFolder =
      isShown && entry.isSymbolicLink() ? await leadsToFolder(join(folder.path, name), folder.root) : !entry.isFile();
    if (isFolder === undefined) continue;
    total += 1;
    if (isShown) fresh.push({ name, folded, isFolder });
    if (fresh.length < PIECE) continue;
    take();
    await nextTurn();
  }
  take();
  return { first, total };
}

function isSpecial(entry: Dirent): boolean {
  return !entry.isFile() && !entry.isDirectory() && !entry.isSymbolicLink();
}

/** Merges two sorted lists into the first `limit` names. */
function merge(one: readonly Candidate[], other: readonly Candidate[], limit: number): Candidate[] {
  const both: Candidate[] = [];
  for (let at = 0, from = 0; both.length < limit; ) {
    const left = one[at];
    const right = other[from];
    if (left !== undefined && (right === undefined || inOrder(left, right) <= 0)) {
      both.push(left);
      at += 1;
    } else if (right === undefined) break;
    else {
      both.push(right);
      from += 1;
    }
  }
  return both;
}

/**
 * Whether a link leads to a folder; undefined when it leads out of the root, nowhere, or to neither
 * a file nor a folder.
 */
async function leadsToFolder(link: string, root: string): Promise<boolean | undefined> {
  try {
    const target = await realpath(link);
    if (target !== root && !target.startsWith(root.endsWith(sep) ? root : root + sep)) return undefined;
    const stats = await stat(target);
    return stats.isFile() || stats.isDirectory() ? stats.isDirectory() : undefined;
  } catch {
    return undefined;
  }
}

/** Describes the names by serve-index, in its order, without files that no longer exist. */
function described(path: string, names: string[]): Promise<Entry[]> {
  return new Promise((resolve, reject) => {
    const template: Parameters<ServeIndex["html"]>[9] = ({ fileList }, done) => {
      resolve(
        fileList.flatMap(({ name, stat }): Entry[] =>
          stat === null ? [] : [{ name, size: stat.isDirectory() ? undefined : stat.size, modified: stat.mtime }],
        ),
      );
      done(null, "");
    };
    const nothing = { setHeader: () => undefined, end: () => undefined };
    // serve-index always reads a style sheet for its own pages, even if only the list is used.
    const style = require.resolve("serve-index/public/style.css");
    library().html(undefined, nothing, names, reject, "/", false, false, path, "details", template, style);
  });
}

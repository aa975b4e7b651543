/**
 * Stores the files of modules by their content: `MODULE/TREE/` has `node_modules/` with the
 * module's package and its dependencies, and `files`, the list of all files. TREE is the hash of
 * that list. Nothing in a tree is ever changed.
 */
import { randomBytes } from "node:crypto";
import { mkdir, open, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { makePrivateFolder } from "../../../core/index.ts";
import { PackageError } from "../errors.ts";
import { withStoreLock } from "./store_lock.ts";
import { faultsOf, filesIn, listText, type TreeFault, treeHash } from "./tree.ts";

/** The folders for the packages of a tree, and for the list of its files. */
const PACKAGES = "node_modules";
const LIST = "files";
const LOCK = ".lock";
const STAGING = ".staging";

/** A folder in the store's file system, in which a tree is made. */
export interface Staging {
  /** An empty folder for other files. */
  readonly scratch: string;
  /** The folder of the tree. */
  readonly tree: string;
}

/** Names a tree: the module, and the hash. */
export interface TreeName {
  readonly module: string;
  readonly tree: string;
}

export class PackageStore {
  readonly folder: string;

  constructor(folder: string) {
    this.folder = folder;
  }

  /** Returns the folder of a tree. Imports from a file in it find the module's package. */
  pathOf({ module, tree }: TreeName): string {
    return join(this.folder, module, tree);
  }

  /**
   * Runs work that changes the store, and removes its staging folder at the end. The work of one
   * process at a time runs; leftovers of killed processes are removed first.
   */
  async change<T>(work: (staging: Staging) => Promise<T>): Promise<T> {
    makePrivateFolder(this.folder);
    const all = join(this.folder, STAGING);
    return await withStoreLock(join(this.folder, LOCK), async () => {
      await rm(all, { recursive: true, force: true });
      const staging = { scratch: join(all, "scratch"), tree: join(all, "tree") };
      await mkdir(staging.scratch, { recursive: true });
      await mkdir(staging.tree);
      try {
        return await work(staging);
      } finally {
        await rm(all, { recursive: true, force: true });
      }
    });
  }

  /**
   * Moves the tree from the staging folder to its address, and returns its hash.
   * @param expected the hash that it must have
   * @throws {PackageError} TREE_OTHER
   */
  async add(module: string, staging: Staging, expected?: string): Promise<string> {
    const list = listText(await filesIn(staging.tree));
    const tree = treeHash(list);
    if (expected !== undefined && tree !== expected) throw new PackageError("TREE_OTHER", { module });
    const path = this.pathOf({ module, tree });
    await writeFile(join(staging.tree, LIST), list, { flag: "wx", flush: true });
    if ((await this.faults({ module, tree })).length === 0) return tree;
    await mkdir(dirname(path), { recursive: true });
    // A damaged copy is replaced.
    await this.#remove(path);
    await rename(staging.tree, path);
    await sync(dirname(path));
    await sync(this.folder);
    return tree;
  }

  async has({ module, tree }: TreeName): Promise<boolean> {
    return (await readFile(join(this.pathOf({ module, tree }), LIST)).catch(() => undefined)) !== undefined;
  }

  /** Compares a tree with what was installed; an intact tree has no faults. */
  async faults(name: TreeName): Promise<TreeFault[]> {
    const path = this.pathOf(name);
    const list = await readFile(join(path, LIST), "utf8").catch(() => undefined);
    // Without the list, nothing else can be compared.
    if (list === undefined) return [{ path: LIST, fault: "missing" }];
    if (treeHash(list) !== name.tree) return [{ path: LIST, fault: "changed" }];
    return (await faultsOf(path, list)).filter(({ path }) => path !== LIST);
  }

  /** Removes all trees except these; returns the removed ones. Call it within `change`. */
  async prune(used: readonly TreeName[]): Promise<TreeName[]> {
    const paths = new Set(used.map((name) => this.pathOf(name)));
    const removed: TreeName[] = [];
    for (const module of await foldersIn(this.folder)) {
      const trees = await foldersIn(join(this.folder, module));
      const unused = trees.filter((tree) => !paths.has(this.pathOf({ module, tree })));
      for (const tree of unused) {
        await this.#remove(this.pathOf({ module, tree }));
        removed.push({ module, tree });
      }
      if (unused.length === trees.length) await rm(join(this.folder, module), { recursive: true, force: true });
    }
    return removed;
  }

  /** Half of a tree never stays at its address: it is moved to the staging folder first. */
  async #remove(path: string): Promise<void> {
    const aside = join(this.folder, STAGING, randomBytes(9).toString("hex"));
    try {
      await rename(path, aside);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return;
      throw error;
    }
    await rm(aside, { recursive: true, force: true });
  }
}

/** Returns the path of a package in a tree. */
export const packagePath = (name: string): string => `${PACKAGES}/${name}`;

async function foldersIn(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { withFileTypes: true });
  return entries.filter((entry) => entry.isDirectory() && !entry.name.startsWith(".")).map(({ name }) => name);
}

/** Makes the entries of a folder durable. */
async function sync(folder: string): Promise<void> {
  const handle = await open(folder);
  await handle.sync().finally(() => handle.close());
}

/** Decides what a node refuses to read and to serve: follows the denylists in its folders. */
import { readdir, stat } from "node:fs/promises";
import { homedir } from "node:os";
import { basename, join } from "node:path";
import type { CID } from "multiformats/cid";
import { parseCid } from "../../formats/cid/text.ts";
import { failure, type NodeError } from "../../util/errors.ts";
import { contentQuery, Denylist, type DenylistQuery, nameQuery } from "./denylist.ts";

export interface DenylistsDeps {
  /** Lists in later folders take precedence over lists of the same name in earlier folders. */
  readonly folders: readonly string[];
  warn(sentence: string): void;
  /** Called when the items have changed. */
  changed(lists: Denylists): void;
}

/** Returns the folders where Kubo looks, too: those of the machine, of the user and of the repo. */
export function denylistFolders(repo: string, { XDG_CONFIG_HOME: config }: NodeJS.ProcessEnv = process.env): string[] {
  const own = config === undefined || config === "" ? join(homedir(), ".config") : config;
  return ["/etc/ipfs/denylists", join(own, "ipfs", "denylists"), join(repo, "denylists")];
}

interface ReadList {
  /** State of the file when it was read. */
  readonly state: string;
  /** Undefined if it could not be read. */
  readonly list: Denylist | undefined;
}

export class Denylists {
  readonly folders: readonly string[];
  readonly #deps: DenylistsDeps;
  /** The lists by file, in ascending order of precedence. */
  #read = new Map<string, ReadList>();
  /** The lists in descending order of precedence. */
  #lists: readonly Denylist[] = [];
  #isHashed = false;
  #reading: Promise<void> | undefined;
  #isMissed = false;

  constructor(deps: DenylistsDeps) {
    this.#deps = deps;
    this.folders = deps.folders;
  }

  /** The files that were found, in ascending order of precedence. */
  get files(): Iterable<string> {
    return this.#read.keys();
  }

  get isEmpty(): boolean {
    return this.#lists.length === 0;
  }

  /**
   * Reads the files that have changed. A file that cannot be read is reported, and its previous
   * items stay in force.
   */
  reread(): Promise<void> {
    if (this.#reading !== undefined) {
      this.#isMissed = true;
      return this.#reading;
    }
    this.#reading = this.#rereadAll().finally(() => {
      this.#reading = undefined;
    });
    return this.#reading;
  }

  async #rereadAll(): Promise<void> {
    do {
      this.#isMissed = false;
      await this.#rereadOnce();
    } while (this.#isMissed);
  }

  async #rereadOnce(): Promise<void> {
    const before = this.#read;
    const now = new Map<string, ReadList>();
    for (const file of await this.#files()) now.set(file, await this.#readFile(file, before.get(file)));
    const isSame = now.size === before.size && [...now].every(([file, read]) => before.get(file) === read);
    if (isSame) return;
    this.#read = now;
    this.#lists = [...now.values()]
      .flatMap(({ list }) => (list === undefined || list.isEmpty ? [] : [list]))
      .toReversed();
    this.#isHashed = this.#lists.some(({ hasHashed }) => hasHashed);
    this.#deps.changed(this);
  }

  /** Sorted by name; files of the same name have the order of their folders. */
  async #files(): Promise<string[]> {
    const found = await Promise.all(
      this.folders.map(async (folder) => {
        const names = await readdir(folder).catch(() => []);
        return names.filter((name) => name.endsWith(".deny")).map((name) => join(folder, name));
      }),
    );
    return found.flat().sort((one, other) => compare(basename(one), basename(other)));
  }

  async #readFile(file: string, before: ReadList | undefined): Promise<ReadList> {
    const state = await stat(file, { bigint: true }).then(
      ({ ino, size, ctimeNs }) => `${ino} ${size} ${ctimeNs}`,
      () => "missing",
    );
    if (before?.state === state) return before;
    try {
      return { state, list: await Denylist.read(file, this.#deps.warn) };
    } catch (error) {
      const effect = before?.list === undefined ? "it has no effect" : "its previous version stays in force";
      this.#deps.warn(`Cannot read the denylist ${file}, so ${effect}: ${(error as Error).message}`);
      return { state, list: before?.list };
    }
  }

  /** Whether reading and serving a block is refused to everyone. */
  denies(cid: CID): boolean {
    return this.#denial(contentQuery(cid, "", this.#isHashed)) !== undefined;
  }

  /** @throws NodeError CONTENT_BLOCKED, CONTENT_BLOCKED_LEGALLY for a block that is denied */
  requireBlock(cid: CID): void {
    this.#require(contentQuery(cid, "", this.#isHashed), () => String(cid));
  }

  /**
   * Checks only the path itself. The blocks on the way are checked when the path is followed.
   *
   * @throws NodeError as `requireBlock`, for a path or name that is denied
   */
  requirePath(namespace: "ipfs" | "ipld" | "ipns", root: string, segments: readonly string[] = []): void {
    if (this.isEmpty) return;
    const path = segments.filter((name) => name !== "").join("/");
    const shown = () => ["", namespace, root, ...segments].join("/");
    if (namespace !== "ipns") {
      this.#require(contentQuery(parseCid(root), path, this.#isHashed), shown);
      return;
    }
    // A denied name is not resolved, so everything below it is denied.
    this.#require(nameQuery(root, "", this.#isHashed), () => `/ipns/${root}`);
    if (path !== "") this.#require(nameQuery(root, path, this.#isHashed), shown);
  }

  #require(query: DenylistQuery, shown: () => string): void {
    const failed = this.#denial(query);
    if (failed !== undefined) throw failed(shown());
  }

  #denial(query: DenylistQuery): ((path: string) => NodeError) | undefined {
    for (const list of this.#lists) {
      const rule = list.match(query);
      if (rule === undefined) continue;
      if (rule.isException) return undefined;
      return (path) => failure(rule.isLegal ? "CONTENT_BLOCKED_LEGALLY" : "CONTENT_BLOCKED", { path });
    }
    return undefined;
  }
}

const compare = (one: string, other: string): number => (one < other ? -1 : Number(one > other));

/**
 * Lists directories in sorted pages, so that a page of a directory with 10,000 entries only costs
 * what it shows. A directory is identified by its CID and never changes, so a cached listing stays
 * valid.
 */
import { setImmediate as turn } from "node:timers/promises";
import { type Node, openFile, parseCid } from "modhost/node";
import type { FilesEntry } from "./types.ts";

/** Maximum number of entries in all cached listings. */
const MAX_CACHED = 100_000;
/**
 * In directories with more entries, sorting does not separate directories from files, because it
 * would have to read each block.
 */
const MAX_TYPED = 20_000;
/** Number of blocks that are read at a time. */
const MAX_READS = 16;
/** Number of blocks for which it is cached whether they are directories. */
const MAX_KNOWN = 100_000;
/** Milliseconds after which other work gets a chance to run. */
const SLICE_MS = 10;

const RAW = 0x55;

export type Sort = "name" | "size" | "type";

type Cid = ReturnType<typeof parseCid>;

interface Child {
  readonly name: string;
  readonly cid: Cid;
  /** Total size of everything below it, as the directory records it. */
  readonly total: number;
  /** Sort key, which puts `b9` before `b10`. */
  readonly order: string;
  /** The bytes of the CID; empty for a raw block, which is never a directory. */
  readonly key: string;
}

export interface PageRequest {
  readonly sort: Sort;
  readonly isDown: boolean;
  /** The searched text in lower case. */
  readonly search: string;
  readonly offset: number;
  readonly limit: number;
  readonly signal: AbortSignal;
}

export class Directories {
  readonly #node: Node;
  /** Listings by CID, the most recently used last. */
  readonly #listings = new Map<string, readonly Child[]>();
  #cached = 0;
  /** Whether a block is a directory, by the bytes of its CID. */
  readonly #isDirectory = new Map<string, boolean>([["", false]]);

  constructor(node: Node) {
    this.#node = node;
  }

  /**
   * Returns the entries whose names contain `search`. Directories come first, except when sorting
   * by size. Only the directory itself may be fetched from peers. @throws NodeError
   */
  async page(
    cid: string,
    { sort, isDown, search, offset, limit, signal }: PageRequest,
  ): Promise<{ readonly total: number; readonly entries: FilesEntry[] }> {
    const all = await this.#children(cid, signal);
    const wanted = search === "" ? all : all.filter(({ name }) => name.toLowerCase().includes(search));
    const sorted = await this.#sorted(wanted, sort, signal);
    if (isDown) sorted.reverse();
    const entries: FilesEntry[] = [];
    for (const child of sorted.slice(offset, offset + limit)) entries.push(await this.#described(child));
    return { total: wanted.length, entries };
  }

  async #sorted(children: readonly Child[], sort: Sort, signal: AbortSignal): Promise<Child[]> {
    if (sort === "size") return children.toSorted((a, b) => a.total - b.total);
    const endings = sort === "type" ? new Map(children.map((child) => [child, endingOf(child.name)])) : undefined;
    const byEnding = (a: Child, b: Child) => compare(endings?.get(a) ?? "", endings?.get(b) ?? "");
    const sorted = endings === undefined ? [...children] : children.toSorted(byEnding);
    if (sorted.length > MAX_TYPED) return sorted;
    const directories = await this.#directoriesIn(sorted, signal);
    return [...sorted.filter((child) => directories.has(child)), ...sorted.filter((child) => !directories.has(child))];
  }

  /** Returns the children, sorted by name. */
  async #children(cid: string, signal: AbortSignal): Promise<readonly Child[]> {
    const cached = this.#listings.get(cid);
    if (cached !== undefined) {
      this.#listings.delete(cid);
      this.#listings.set(cid, cached);
      return cached;
    }
    const children: Child[] = [];
    const pause = pacer(signal);
    for await (const { name, cid: child, size } of this.#links(cid, signal)) {
      const key = child.code === RAW ? "" : Buffer.from(child.bytes).toString("latin1");
      children.push({ name, cid: child, total: size, order: orderOf(name), key });
      await pause();
    }
    children.sort((a, b) => compare(a.order, b.order) || compare(a.name, b.name));
    this.#keep(cid, children);
    return children;
  }

  async *#links(text: string, signal: AbortSignal) {
    const cid = parseCid(text);
    const { unixfs, links } = await openFile(cid, this.#node.lowLevel.reader({ signal }));
    if (unixfs.type !== "HAMTShard") return yield* links;
    const options = { resolveType: false, size: false, stream: true, signal };
    for await (const row of this.#node.ls.rows([`/ipfs/${cid}`], options)) {
      if ("link" in row) yield { name: row.link.name, cid: row.link.cid, size: row.link.tsize };
    }
  }

  #keep(cid: string, children: readonly Child[]): void {
    if (children.length > MAX_CACHED) return;
    this.#listings.set(cid, children);
    this.#cached += children.length;
    for (const [oldest, entries] of this.#listings) {
      if (this.#cached <= MAX_CACHED) return;
      this.#listings.delete(oldest);
      this.#cached -= entries.length;
    }
  }

  async #directoriesIn(children: readonly Child[], signal: AbortSignal): Promise<Set<Child>> {
    const unknown = children.filter(({ key }) => !this.#isDirectory.has(key)).values();
    const pause = pacer(signal);
    const read = async () => {
      for (const { cid, key } of unknown) {
        await this.#lookAt(cid, key);
        await pause();
      }
    };
    await Promise.all(Array.from({ length: MAX_READS }, read));
    return new Set(children.filter(({ key }) => this.#isDirectory.get(key) === true));
  }

  /** A missing block may arrive later, so its absence is not cached. */
  async #lookAt(cid: Cid, key: string): Promise<void> {
    const bytes = await this.#node.lowLevel.blocks.find(cid);
    if (bytes === undefined) return;
    const type = await openFile(cid, async () => bytes).then(
      ({ unixfs }) => unixfs.type,
      () => undefined,
    );
    if (this.#isDirectory.size > MAX_KNOWN) this.#isDirectory.delete(this.#oldest());
    this.#isDirectory.set(key, type === "Directory" || type === "HAMTShard");
  }

  /** Returns the oldest key after the first, which stands for raw blocks and stays. */
  #oldest(): string {
    const [, oldest = ""] = this.#isDirectory.keys().take(2);
    return oldest;
  }

  async #described({ name, cid, total }: Child): Promise<FilesEntry> {
    const text = cid.toString();
    const entry = { name, cid: text, size: total };
    if (!(await this.#node.lowLevel.blocks.has(cid))) return { ...entry, type: "unknown", is_here: false };
    const stat = await this.#node.files.stat(`/ipfs/${text}`, { offline: true }).catch(() => undefined);
    if (stat === undefined) return { ...entry, type: "unknown", is_here: true };
    const { type, size } = stat;
    return { ...entry, type, size: type === "directory" ? total : size, is_here: true };
  }
}

/** Returns a function that lets other work run from time to time. */
function pacer(signal: AbortSignal): () => Promise<void> | undefined {
  let since = performance.now();
  return () => {
    if (performance.now() - since < SLICE_MS) return undefined;
    signal.throwIfAborted();
    return turn().then(() => {
      since = performance.now();
    });
  };
}

const compare = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);

/** Numbers in names are padded to this many digits. */
const MAX_DIGITS = 12;

const orderOf = (name: string) => name.toLowerCase().replace(/\d+/g, (digits) => digits.padStart(MAX_DIGITS, "0"));

const endingOf = (name: string) => /\.([^.]*)$/.exec(name)?.[1]?.toLowerCase() ?? "";

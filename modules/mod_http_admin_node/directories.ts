/**
 * Listings of directories, sorted, so that a page of 10,000 entries costs what it shows. A directory is known by its CID and
 * never changes: a listing that was made stays right for as long as it is kept.
 */
import { setImmediate as turn } from "node:timers/promises";
import { type Node, openFile, parseCid } from "modhost/node";
import type { FilesEntry } from "./types.ts";

/** Entries of all listings that are kept. */
const MAX_KEPT = 100_000;
/** Directories with more are not told apart from files where they are sorted: each block would have to be read. */
const MAX_TYPED = 20_000;
/** Blocks that are read at a time. */
const MAX_READS = 16;
/** Blocks of which it is known whether they are directories. */
const MAX_KNOWN = 100_000;
/** Milliseconds after which others have their turn. */
const SLICE_MS = 10;

const RAW = 0x55;

export type Sort = "name" | "size" | "type";

type Cid = ReturnType<typeof parseCid>;

interface Child {
  readonly name: string;
  readonly cid: Cid;
  /** What the directory says of all below it. */
  readonly total: number;
  /** Sorted by it, `b9` comes before `b10`. */
  readonly order: string;
  /** The bytes of the CID; empty for a raw block, which is no directory. */
  readonly key: string;
}

export interface PageAsked {
  readonly sort: Sort;
  readonly isDown: boolean;
  /** In lower case. */
  readonly search: string;
  readonly offset: number;
  readonly limit: number;
  readonly signal: AbortSignal;
}

export class Directories {
  readonly #node: Node;
  /** The latest last. */
  readonly #listings = new Map<string, readonly Child[]>();
  #kept = 0;
  /** By the bytes of the CID. */
  readonly #isDirectory = new Map<string, boolean>([["", false]]);

  constructor(node: Node) {
    this.#node = node;
  }

  /**
   * Entries whose names hold `search`, in their order: directories before others, except by size. No peer is asked for
   * anything but the directory.
   *
   * @throws NodeError
   */
  async page(
    cid: string,
    { sort, isDown, search, offset, limit, signal }: PageAsked,
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

  /** Sorted by name. */
  async #children(cid: string, signal: AbortSignal): Promise<readonly Child[]> {
    const kept = this.#listings.get(cid);
    if (kept !== undefined) {
      this.#listings.delete(cid);
      this.#listings.set(cid, kept);
      return kept;
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
    if (children.length > MAX_KEPT) return;
    this.#listings.set(cid, children);
    this.#kept += children.length;
    for (const [oldest, entries] of this.#listings) {
      if (this.#kept <= MAX_KEPT) return;
      this.#listings.delete(oldest);
      this.#kept -= entries.length;
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

  /** What is not here may be so later: it is not remembered. */
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

  /** That of raw blocks, which is the first, stays. */
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

/** Lets others have their turn now and then. */
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

/** Digits that a number is filled up to. */
const MAX_DIGITS = 12;

const orderOf = (name: string) => name.toLowerCase().replace(/\d+/g, (digits) => digits.padStart(MAX_DIGITS, "0"));

const endingOf = (name: string) => /\.([^.]*)$/.exec(name)?.[1]?.toLowerCase() ?? "";

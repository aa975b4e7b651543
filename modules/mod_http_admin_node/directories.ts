/**
 * Listings of directories, sorted, so that a page of 10,000 entries costs what it shows. A directory is known by its CID and
 * never changes: a listing that was made stays right for as long as it is kept.
 */
import { type Node, parseCid } from "modhost/node";
import type { EntryType, FilesEntry } from "./types.ts";

/** Entries of all listings that are kept. */
const MAX_KEPT = 100_000;
/** Directories with more have their entries told by name alone: what each is, is looked up for those on the page. */
const MAX_TYPED = 20_000;
/** Children whose blocks are read at a time. */
const MAX_READS = 16;
/** Files and directories that were looked at, by CID. */
const MAX_KNOWN = 50_000;

export type Sort = "name" | "size" | "type";

interface Child {
  readonly name: string;
  readonly cid: string;
  /** What the directory says of all below it. */
  readonly total: number;
}

type Facts = Pick<FilesEntry, "type" | "size" | "is_here">;

export class Directories {
  readonly #node: Node;
  /** The latest last. */
  readonly #listings = new Map<string, readonly Child[]>();
  #kept = 0;
  readonly #known = new Map<string, Facts>();

  constructor(node: Node) {
    this.#node = node;
  }

  /**
   * Entries whose names hold `search`, in their order: directories before others, except by size.
   *
   * @throws NodeError
   */
  async page(
    cid: string,
    { sort, isDown, search, offset, limit, signal }: PageAsked,
  ): Promise<{ readonly total: number; readonly entries: FilesEntry[] }> {
    const all = await this.#children(cid, signal);
    const wanted = search === "" ? all : all.filter(({ name }) => name.toLowerCase().includes(search));
    const isTyped = sort !== "size" && wanted.length <= MAX_TYPED;
    const typed = isTyped ? await this.#describeAll(wanted, signal) : undefined;
    const sorted = sortedBy(sort, wanted, typed);
    if (isDown) sorted.reverse();
    const onPage = sorted.slice(offset, offset + limit);
    const facts = typed ?? (await this.#describeAll(onPage, signal));
    const entries = onPage.map((child): FilesEntry => {
      const { name, total } = child;
      return { name, cid: child.cid, ...(facts.get(child) ?? { type: "unknown", size: total, is_here: false }) };
    });
    return { total: wanted.length, entries };
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
    const options = { resolveType: false, size: false, stream: true, signal };
    for await (const row of this.#node.ls.rows([`/ipfs/${cid}`], options)) {
      if ("link" in row) children.push({ name: row.link.name, cid: row.link.cid.toString(), total: row.link.tsize });
    }
    const collator = new Intl.Collator("en", { numeric: true });
    children.sort((a, b) => collator.compare(a.name, b.name) || (a.name < b.name ? -1 : 1));
    this.#keep(cid, children);
    return children;
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

  async #describeAll(children: readonly Child[], signal: AbortSignal): Promise<Map<Child, Facts>> {
    const facts = new Map<Child, Facts>();
    const left = children.values();
    const work = async () => {
      for (const child of left) facts.set(child, await this.#describe(child, signal));
    };
    await Promise.all(Array.from({ length: MAX_READS }, work));
    return facts;
  }

  /** Nothing is fetched for it. */
  async #describe({ cid, total }: Child, signal: AbortSignal): Promise<Facts> {
    const known = this.#known.get(cid);
    if (known !== undefined) return known;
    signal.throwIfAborted();
    if (!(await this.#node.lowLevel.blocks.has(parseCid(cid)))) return { type: "unknown", size: total, is_here: false };
    const { type, size } = await this.#node.files
      .stat(`/ipfs/${cid}`, { offline: true })
      .catch(() => ({ type: "unknown" as EntryType, size: total }));
    const facts: Facts = { type, size: type === "directory" ? total : size, is_here: true };
    this.#known.set(cid, facts);
    if (this.#known.size > MAX_KNOWN) this.#known.delete(this.#known.keys().next().value as string);
    return facts;
  }
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

const ranks: Readonly<Record<EntryType, number>> = { directory: 0, file: 1, symlink: 1, unknown: 1 };

function sortedBy(sort: Sort, children: readonly Child[], facts: ReadonlyMap<Child, Facts> | undefined): Child[] {
  if (sort === "size") return children.toSorted((a, b) => a.total - b.total);
  if (facts === undefined) return [...children];
  const rank = (child: Child) => ranks[facts.get(child)?.type ?? "unknown"];
  const ending = ({ name }: Child) => /\.([^.]*)$/.exec(name)?.[1]?.toLowerCase() ?? "";
  return children.toSorted((a, b) => {
    const byRank = rank(a) - rank(b);
    if (byRank !== 0 || sort === "name") return byRank;
    return ending(a) < ending(b) ? -1 : ending(a) > ending(b) ? 1 : 0;
  });
}

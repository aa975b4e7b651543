/**
 * Random graphs of blocks with roots of every kind, and a slow but simple model of the blocks that
 * a collection must retain.
 */
import type { CID } from "multiformats/cid";
import { create as createDigest } from "multiformats/hashes/digest";
import { dagCbor, dagPb, raw } from "#node/formats/cid/codecs.ts";
import { identity, multihash, sha256 } from "#node/formats/cid/hashes.ts";
import { makeCid, usualForms } from "#node/formats/cid/make.ts";
import { encodeCbor } from "#node/formats/dag_cbor/write.ts";
import { encodePb } from "#node/formats/dag_pb/dag_pb.ts";
import { linksOf } from "#node/formats/ipld/links.ts";
import type { Block } from "#node/storage/blockstore/store.ts";
import { seeded } from "#test/support/seeded.ts";

/** The four ways in which a root can be known to a host. */
export const kinds = ["recursive", "direct", "present", "guarded"] as const;
export type Kind = (typeof kinds)[number];
export type Roots = Readonly<Record<Kind, readonly CID[]>>;

/** Versions 0 and 1 of a CID are one block for a collection. */
const blockOf = ({ code, multihash: { bytes } }: CID): string => `${code} ${Buffer.from(bytes).toString("hex")}`;
/** Returns the same key for all CIDs of a multihash. */
export const bytesOf = ({ multihash: { bytes } }: CID): string => Buffer.from(bytes).toString("hex");

export class Chance {
  readonly #random: () => number;

  constructor(seed: number) {
    this.#random = seeded(seed);
  }

  below(bound: number): number {
    return Math.floor(this.#random() * bound);
  }

  one<T>(of: readonly T[]): T {
    return of[this.below(of.length)] as T;
  }

  /** Returns true once in `times` calls on average. */
  is(times: number): boolean {
    return this.below(times) === 0;
  }
}

/** A block, and the CIDs under which others link to it. */
interface Item {
  readonly bytes: Uint8Array;
  readonly cids: readonly CID[];
}

export class Graph {
  readonly #chance: Chance;
  readonly #salt: string;
  readonly #items: Item[] = [];

  private constructor(chance: Chance, salt: string) {
    this.#chance = chance;
    this.#salt = salt;
  }

  /** `salt` makes its blocks differ from those of other graphs. */
  static async random(chance: Chance, size: number, salt: string): Promise<Graph> {
    const graph = new Graph(chance, salt);
    for (let at = 0; at < size; at += 1) await graph.#add(at);
    return graph;
  }

  /** Any CID of the graph. */
  cid(): CID {
    return this.#chance.one(this.#chance.one(this.#items).cids);
  }

  async #add(at: number): Promise<void> {
    const chance = this.#chance;
    const links = at === 0 ? [] : Array.from({ length: chance.below(4) }, () => this.cid());
    const data = Buffer.from(`${this.#salt} ${at}`);
    const codec = chance.one([raw, dagPb, dagPb, dagPb, dagCbor]);
    const bytes =
      codec === raw
        ? data
        : codec === dagPb
          ? encodePb({ data, links: links.map((cid) => ({ name: "", size: 0, cid })) })
          : encodeCbor([data.toString(), ...links]);
    if (codec === dagPb && chance.is(8)) {
      this.#items.push({ bytes, cids: [makeCid(1, dagPb, createDigest(identity.code, bytes))] });
      return;
    }
    const digest = await multihash(sha256, bytes);
    // Other programs may link to the same bytes under any codec: what is a leaf for one is a
    // directory for another.
    const forms = usualForms(digest).filter(({ code }) => code === codec || chance.is(3));
    this.#items.push({ bytes, cids: forms });
  }

  /** A few blocks that are not stored at first. */
  missing(): ReadonlySet<Item> {
    return new Set(this.#items.filter(() => this.#chance.is(8)));
  }

  /** Stores each other block under some of its CIDs. */
  stored(missing: ReadonlySet<Item>): Block[] {
    return this.#blocks(
      this.#items.filter((item) => !missing.has(item)),
      (cids) => cids.filter(() => this.#chance.is(2)),
    );
  }

  /** Returns these blocks under all of their CIDs. */
  all(items: Iterable<Item>): Block[] {
    return this.#blocks([...items], (cids) => cids);
  }

  #blocks(items: readonly Item[], choose: (cids: readonly CID[]) => readonly CID[]): Block[] {
    return items.flatMap(({ bytes, cids }) => {
      if (isInline(cids[0] as CID)) return [];
      const some = choose(cids);
      return (some.length === 0 ? [this.#chance.one(cids)] : some).map((cid) => ({ cid, bytes }));
    });
  }

  roots(isComplete: (cid: CID) => boolean): Roots {
    const roots: Record<Kind, CID[]> = { recursive: [], direct: [], present: [], guarded: [] };
    for (let left = 1 + this.#chance.below(6); left > 0; left -= 1) {
      const cid = this.cid();
      const kind = this.#chance.one(kinds);
      roots[kind === "recursive" && !isComplete(cid) ? "direct" : kind].push(cid);
    }
    return roots;
  }
}

const isInline = (cid: CID): boolean => cid.multihash.code === identity.code;

function linksBelow(cid: CID, bytes: Uint8Array): readonly CID[] {
  try {
    return linksOf(cid, bytes);
  } catch {
    return [];
  }
}

/** The blocks of a store, by multihash. */
export class Contents {
  readonly #bytes = new Map<string, Uint8Array>();

  constructor(blocks: readonly Block[]) {
    for (const { cid, bytes } of blocks) this.#bytes.set(bytesOf(cid), bytes);
  }

  /** A block can be read under any CID of its multihash. */
  read(cid: CID): Uint8Array | undefined {
    return isInline(cid) ? cid.multihash.digest : this.#bytes.get(bytesOf(cid));
  }

  /**
   * Returns all readable blocks below some roots. It repeats a full scan until nothing new is
   * found.
   */
  below(roots: readonly CID[]): CID[] {
    const found = new Map(roots.map((cid) => [blockOf(cid), cid]));
    for (let before = -1; before !== found.size; ) {
      before = found.size;
      for (const cid of [...found.values()]) {
        const bytes = this.read(cid);
        for (const link of bytes === undefined ? [] : linksBelow(cid, bytes)) found.set(blockOf(link), link);
      }
    }
    return [...found.values()];
  }

  isComplete(root: CID): boolean {
    return this.below([root]).every((cid) => this.read(cid) !== undefined);
  }
}

/** The blocks that the roots retain. */
export const retainedBy = (contents: Contents, { recursive, present, guarded, direct }: Roots): CID[] => [
  ...contents.below([...recursive, ...present, ...guarded]),
  ...direct,
];

export interface Outcome {
  /** Retained blocks that were stored before. */
  readonly lost: readonly string[];
  /** Blocks that are still stored although no root retains them. */
  readonly left: readonly CID[];
}

/**
 * @param lists `before` and `after` are the stored forms
 * @param reads returns whether a block can be read afterwards
 */
export async function outcomeOf(
  retained: readonly CID[],
  contents: Contents,
  { before, after }: { readonly before: readonly CID[]; readonly after: readonly CID[] },
  reads: (cid: CID) => Promise<boolean>,
): Promise<Outcome> {
  const lost: string[] = [];
  for (const cid of retained) if (contents.read(cid) !== undefined && !(await reads(cid))) lost.push(String(cid));
  const blocks = new Set(retained.map(blockOf));
  const isRetainedIn = (cid: CID) => after.some((one) => bytesOf(one) === bytesOf(cid) && blocks.has(blockOf(one)));
  const multihashes = new Set(retained.map(bytesOf));
  const known = new Set(before.map(String));
  const left = after.filter((cid) => {
    if (!known.has(String(cid)) || blocks.has(blockOf(cid))) return false;
    // If the block is retained under another form, its only stored form stays.
    return !multihashes.has(bytesOf(cid)) || isRetainedIn(cid);
  });
  return { lost, left };
}

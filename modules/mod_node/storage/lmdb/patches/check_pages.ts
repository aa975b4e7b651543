/**
 * Reads the B+ trees of an LMDB file without LMDB. LMDB maps the file into memory and trusts it: a
 * wrong page number crashes the process. This check covers everything that LMDB trusts: every page
 * of every tree, page numbers within the file, and the list of free pages. Readers never use that
 * list, so damage in it would only show at the next write.
 *
 * The layout is that of `mdb.c` in lmdb-js 3.5 (data version 2) on 64-bit little-endian machines;
 * see README.md.
 */
import { closeSync, fstatSync, openSync, readSync } from "node:fs";

/** `MDB_page`: the header of every page. */
const PAGE = { number: 0, flags: 18, lower: 20, length: 24 } as const;
const PAGE_FLAGS = { branch: 1, leaf: 2, overflow: 4 } as const;
/**
 * `MDB_meta`, after the header of the pages 0 and 1. The first of its two trees begins with the
 * size of a page.
 */
const META = { magic: 0, version: 4, free: 24, tables: 72, lastPage: 120, transaction: 128, length: 136 } as const;
const MAGIC = 0xbeefc0de;
const DATA_VERSION = 2;
/** `MDB_db`: a tree. */
const TREE = { pageSize: 0, depth: 6, root: 40, length: 48 } as const;
const NO_ROOT = 0xffff_ffff_ffff_ffffn;
/**
 * `MDB_node`: an entry of a page. In a branch page, `low` and `flags` together are the number of
 * the page below.
 */
const NODE = { low: 0, flags: 4, keyLength: 6, length: 8 } as const;
const NODE_FLAGS = { bigData: 1, subTree: 2 } as const;
const MIN_PAGE_SIZE = 512;
const MAX_PAGE_SIZE = 65_536;
const FIRST_DATA_PAGE = 2n;

interface Meta {
  readonly pageSize: number;
  readonly free: Tree;
  readonly tables: Tree;
  /** The highest number of a page in use. */
  readonly lastPage: bigint;
  readonly transaction: bigint;
}

interface Tree {
  /** Number of pages from the root to a leaf, including both. */
  readonly depth: number;
  readonly root: bigint;
}

/**
 * Walks all trees from which the next transaction starts. Does not inspect keys and values.
 *
 * @returns a sentence when the file has an unknown layout and was not checked; undefined when it
 * was checked
 * @throws Error that names a damaged page
 */
export function checkPages(path: string): string | undefined {
  const file = openSync(path, "r");
  try {
    const first = readMeta(file, 0);
    const second = first && readMeta(file, first.pageSize);
    if (first === undefined || second === undefined) return `${path} has an unknown layout and was not checked`;
    new Pages(file, second.transaction > first.transaction ? second : first).check();
    return undefined;
  } finally {
    closeSync(file);
  }
}

/** Reads the meta page at an offset; undefined when it has another layout. */
function readMeta(file: number, offset: number): Meta | undefined {
  const bytes = Buffer.alloc(PAGE.length + META.length);
  if (readSync(file, bytes, 0, bytes.length, offset) < bytes.length) return undefined;
  const meta = bytes.subarray(PAGE.length);
  if (meta.readUInt32LE(META.magic) !== MAGIC || meta.readUInt16LE(META.version) !== DATA_VERSION) return undefined;
  const pageSize = meta.readUInt32LE(META.free + TREE.pageSize);
  const isPowerOfTwo = (pageSize & (pageSize - 1)) === 0;
  if (pageSize < MIN_PAGE_SIZE || pageSize > MAX_PAGE_SIZE || !isPowerOfTwo) return undefined;
  return {
    pageSize,
    free: readTree(meta, META.free),
    tables: readTree(meta, META.tables),
    lastPage: meta.readBigUInt64LE(META.lastPage),
    transaction: meta.readBigUInt64LE(META.transaction),
  };
}

const readTree = (bytes: Buffer, at: number): Tree => ({
  depth: bytes.readUInt16LE(at + TREE.depth),
  root: bytes.readBigUInt64LE(at + TREE.root),
});

type Visit = (value: Buffer, flags: number, page: bigint) => void;

class Pages {
  readonly #file: number;
  readonly #fileLength: number;
  readonly #meta: Meta;

  constructor(file: number, meta: Meta) {
    this.#file = file;
    this.#fileLength = fstatSync(file).size;
    this.#meta = meta;
  }

  check(): void {
    this.#walk(this.#meta.free, (list, _flags, page) => this.#checkFreeList(list, page));
    this.#walk(this.#meta.tables, (value, flags) => {
      const isTable = (flags & NODE_FLAGS.subTree) !== 0 && value.length === TREE.length;
      if (isTable) this.#walk(readTree(value, 0));
    });
  }

  /** Values with pages of their own are read only when `visit` is given. */
  #walk({ depth, root }: Tree, visit?: Visit): void {
    if (root !== NO_ROOT) this.#walkPage(root, depth, visit);
  }

  /**
   * `levels` is the number of levels from this page down to the leaves. It ends the walk when pages
   * form a circle.
   */
  #walkPage(number: bigint, levels: number, visit: Visit | undefined): void {
    const page = this.#read(number, this.#meta.pageSize);
    const { branch, leaf, overflow } = PAGE_FLAGS;
    const kind = page.readUInt16LE(PAGE.flags) & (branch | leaf | overflow);
    if (kind !== (levels > 1 ? branch : leaf)) throw damaged(number, "does not belong to its tree");
    const entries = page.readUInt16LE(PAGE.lower) >> 1;
    if (entries === 0 || PAGE.length + entries * 2 > page.length) throw damaged(number, `has ${entries} entries`);
    for (let entry = 0; entry < entries; entry += 1) {
      const at = PAGE.length + page.readUInt16LE(PAGE.length + entry * 2);
      if (at + NODE.length > page.length) throw damaged(number, "is torn");
      const data = at + NODE.length + page.readUInt16LE(at + NODE.keyLength);
      const low = page.readUInt32LE(at + NODE.low);
      const flags = page.readUInt16LE(at + NODE.flags);
      const isBig = (flags & NODE_FLAGS.bigData) !== 0;
      const inPage = kind === branch ? 0 : isBig ? PAGE.length : low;
      if (data + inPage > page.length) throw damaged(number, "is torn");
      if (kind === branch) {
        this.#walkPage((BigInt(flags) << 32n) | BigInt(low), levels - 1, visit);
      } else {
        const value = isBig ? this.#bigValue(page.readBigUInt64LE(data), low, visit) : page.subarray(data, data + low);
        visit?.(value, flags, number);
      }
    }
  }

  /** Reads a value of `size` bytes that has its own pages. */
  #bigValue(first: bigint, size: number, visit: Visit | undefined): Buffer {
    const bytes = this.#read(first, PAGE.length + size, visit === undefined ? PAGE.length : PAGE.length + size);
    if ((bytes.readUInt16LE(PAGE.flags) & PAGE_FLAGS.overflow) === 0)
      throw damaged(first, "does not belong to its tree");
    return bytes.subarray(PAGE.length);
  }

  /**
   * Checks a list of free pages: a count, followed by that many page numbers. A negative number is
   * the length of a run of pages.
   */
  #checkFreeList(list: Buffer, page: bigint): void {
    const count = list.length < 8 ? 0n : list.readBigUInt64LE(0);
    if (count > 0n && count > BigInt(list.length >> 3) - 1n)
      throw damaged(page, "has a free list that is longer than its data");
    const { lastPage } = this.#meta;
    for (let at = 8; at <= Number(count) * 8; at += 8) {
      const free = list.readBigInt64LE(at);
      if (free > lastPage || -free > lastPage) throw damaged(page, `lists page ${free} of ${lastPage}`);
    }
  }

  /** Reads the first `wanted` bytes of a page or a run of pages with `size` bytes. */
  #read(number: bigint, size: number, wanted = size): Buffer {
    const { pageSize, lastPage } = this.#meta;
    const pages = Math.ceil(size / pageSize);
    const offset = Number(number) * pageSize;
    const isInUse = number >= FIRST_DATA_PAGE && number + BigInt(pages) - 1n <= lastPage;
    if (!isInUse || offset + pages * pageSize > this.#fileLength) throw damaged(number, "is not in the file");
    const bytes = Buffer.allocUnsafe(wanted);
    if (readSync(this.#file, bytes, 0, wanted, offset) < wanted) throw damaged(number, "is not in the file");
    if (bytes.readBigUInt64LE(PAGE.number) !== number) throw damaged(number, "has the number of another page");
    return bytes;
  }
}

const damaged = (number: bigint, why: string): Error => new Error(`page ${number} of the file ${why}`);

/**
 * The trees of an LMDB file, read without LMDB. What it would trust is held against the file here: the list of free
 * pages, which no reader ever looks at so that damage in it ends the process at the next write, and pages that the
 * file ends in. Layout as in `mdb.c` of lmdb-js 3.5 (data version 2) on machines of 64 bits.
 */
import { closeSync, fstatSync, openSync, readSync } from "node:fs";
import { endianness } from "node:os";

const header = 24;
const magic = 0xbeefc0de;
const dataVersion = 2;
/** Bytes of what is said of a tree. */
const treeLength = 48;
const noRoot = 0xffff_ffff_ffff_ffffn;
/** Flags of pages and of entries. */
const [branch, leaf, overflow] = [1, 2, 4];
const [bigData, subTree] = [1, 2];
const nodeHead = 8;

interface Meta {
  readonly pageSize: number;
  readonly free: Tree;
  readonly tables: Tree;
  /** The highest page in use. */
  readonly last: bigint;
  readonly transaction: bigint;
}

interface Tree {
  /** Pages from the root to a leaf, both counted. */
  readonly depth: number;
  readonly root: bigint;
}

/**
 * Walks all trees that the next transaction will start from. A file of another layout is left to LMDB, and so is one
 * whose head cannot be read. What keys and values say is not looked at.
 *
 * @throws Error which names a page that is not as it should be
 */
export function checkStructure(path: string): void {
  if (endianness() !== "LE") return;
  const file = openSync(path, "r");
  try {
    const first = readMeta(file, 0);
    const second = first && readMeta(file, first.pageSize);
    if (first === undefined || second === undefined) return;
    new Pages(file, second.transaction > first.transaction ? second : first).check();
  } finally {
    closeSync(file);
  }
}

function readMeta(file: number, at: number): Meta | undefined {
  const bytes = Buffer.alloc(header + 136);
  if (readSync(file, bytes, 0, bytes.length, at) < bytes.length) return undefined;
  const meta = bytes.subarray(header);
  if (meta.readUInt32LE(0) !== magic || meta.readUInt16LE(4) !== dataVersion) return undefined;
  const pageSize = meta.readUInt32LE(24);
  if (pageSize < 512 || pageSize > 65_536 || (pageSize & (pageSize - 1)) !== 0) return undefined;
  return {
    pageSize,
    free: readTree(meta, 24),
    tables: readTree(meta, 24 + treeLength),
    last: meta.readBigUInt64LE(120),
    transaction: meta.readBigUInt64LE(128),
  };
}

const readTree = (bytes: Buffer, at: number): Tree => ({
  depth: bytes.readUInt16LE(at + 6),
  root: bytes.readBigUInt64LE(at + 40),
});

type Visit = (value: Buffer, flags: number, page: bigint) => void;

class Pages {
  readonly #file: number;
  readonly #length: number;
  readonly #meta: Meta;

  constructor(file: number, meta: Meta) {
    this.#file = file;
    this.#length = fstatSync(file).size;
    this.#meta = meta;
  }

  check(): void {
    this.#walk(this.#meta.free, (list, _flags, page) => this.#listed(list, page));
    this.#walk(this.#meta.tables, (value, flags) => {
      if ((flags & subTree) !== 0 && value.length === treeLength) this.#walk(readTree(value, 0));
    });
  }

  /** Values are read only when somebody looks at them. */
  #walk({ depth, root }: Tree, visit?: Visit): void {
    if (root !== noRoot) this.#page(root, depth, visit);
  }

  /** Walks what is below a page which has so many levels, its own among them. */
  #page(number: bigint, levels: number, visit: Visit | undefined): void {
    const page = this.#read(number, this.#meta.pageSize);
    const kind = page.readUInt16LE(18) & (branch | leaf | overflow);
    if (kind !== (levels > 1 ? branch : leaf)) throw broken(number, "is no part of a tree");
    const nodes = page.readUInt16LE(20) >> 1;
    if (nodes === 0 || header + nodes * 2 > page.length) throw broken(number, `has ${nodes} entries`);
    for (let node = 0; node < nodes; node += 1) {
      const at = header + page.readUInt16LE(header + node * 2);
      const data = at + nodeHead <= page.length ? at + nodeHead + page.readUInt16LE(at + 6) : page.length + 1;
      const low = page.readUInt32LE(Math.min(at, page.length - 4));
      const flags = page.readUInt16LE(Math.min(at + 4, page.length - 2));
      const big = (flags & bigData) !== 0;
      if (data + (kind === branch ? 0 : big ? header : low) > page.length) throw broken(number, "is torn");
      if (kind === branch) {
        this.#page((BigInt(flags) << 32n) | BigInt(low), levels - 1, visit);
      } else {
        const value = big ? this.#run(page.readBigUInt64LE(data), low, visit) : page.subarray(data, data + low);
        visit?.(value, flags, number);
      }
    }
  }

  /** A value of `size` bytes that has pages to itself. */
  #run(first: bigint, size: number, visit: Visit | undefined): Buffer {
    const head = this.#read(first, header + size, visit === undefined ? header : header + size);
    if ((head.readUInt16LE(18) & overflow) === 0) throw broken(first, "is no part of a tree");
    return head.subarray(header);
  }

  /** A list is a count and that many numbers of pages; lengths of runs among them are below zero. */
  #listed(list: Buffer, page: bigint): void {
    const count = list.length < 8 ? 0n : list.readBigUInt64LE(0);
    if (count > BigInt(list.length >> 3) - 1n && count > 0n) throw broken(page, "lists more than it holds");
    const { last } = this.#meta;
    for (let at = 8; at <= Number(count) * 8; at += 8) {
      const free = list.readBigInt64LE(at);
      if (free > last || -free > last) throw broken(page, `lists page ${free} of ${last}`);
    }
  }

  /** `wanted` bytes from the start of a page that `size` bytes belong to. */
  #read(number: bigint, size: number, wanted = size): Buffer {
    const { pageSize, last } = this.#meta;
    const pages = Math.ceil(size / pageSize);
    const at = Number(number) * pageSize;
    if (number < 2n || number + BigInt(pages) - 1n > last || at + pages * pageSize > this.#length) {
      throw broken(number, "is not in the file");
    }
    const bytes = Buffer.allocUnsafe(wanted);
    if (readSync(this.#file, bytes, 0, wanted, at) < wanted) throw broken(number, "is not in the file");
    if (bytes.readBigUInt64LE(0) !== number) throw broken(number, "calls itself another");
    return bytes;
  }
}

const broken = (number: bigint, why: string): Error => new Error(`page ${number} of the file ${why}`);

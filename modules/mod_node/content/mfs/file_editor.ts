/**
 * Edits a file in place. Overwritten leaves keep their length, and new content is appended as a
 * trickle DAG, as in the reference. The memory does not grow with the file.
 */

import type { CID } from "multiformats/cid";
import { raw } from "../../formats/cid/codecs.ts";
import { sha256 } from "../../formats/cid/hashes.ts";
import { type Chunker, SizeChunker } from "../../formats/unixfs/chunker/chunker.ts";
import { defaultChunkSize } from "../../formats/unixfs/chunker/parse.ts";
import type { ModeAndTime, UnixTime } from "../../formats/unixfs/format.ts";
import { failure } from "../../util/errors.ts";
import { ownBytes } from "../../util/own_bytes.ts";
import type { ReadBlock } from "../dag/reader.ts";
import { type BlockSink, type CidSettings, cidOf, defaultCid } from "../unixfs/build.ts";
import { fillLayer, interior, MAX_LINKS, TRICKLE_REPEAT, trickleTree } from "../unixfs/layout.ts";
import { type FilePart, Leaves } from "../unixfs/leaves.ts";
import { type UnixfsNode, unixfsNode } from "../unixfs/node.ts";
import { unixNow } from "../unixfs/times.ts";
import type { ByteReader } from "./byte_reader.ts";
import { settingsOf } from "./cid_settings.ts";

/** Chunk size of the zeros that fill a gap. */
const ZERO_CHUNK = 4096;
const zeroes = new Uint8Array(64 * ZERO_CHUNK);
const nothing = new Uint8Array();

/** A node of a file that is being changed. */
interface OpenNode extends ModeAndTime {
  settings: CidSettings;
  mtime: UnixTime | undefined;
  /** Whether it is a raw block. Raw blocks have no parts. */
  raw: boolean;
  type: "File" | "Raw";
  /** Bytes before those of the parts. */
  data: Uint8Array | undefined;
  parts: FilePart[];
}

const sizeOf = ({ data, parts }: Pick<OpenNode, "data" | "parts">): number =>
  parts.reduce((sum, { filesize }) => sum + filesize, data?.length ?? 0);

/** Options for the leaves of appended content. */
export interface NewLeaves {
  /** Whether the leaves are raw blocks. By default, the CID version of the file decides. */
  readonly rawLeaves?: boolean | undefined;
  /** Chunks of 256 KiB by default. */
  readonly chunker?: (() => Chunker) | undefined;
  /**
   * Whether the rules of Kubo 0.43 apply: content that is appended to a file of one raw block
   * becomes raw blocks, and any other leaf that is truncated keeps its type and gets a CID of
   * version 0. Otherwise the rules of go-ipfs 0.9 apply: `rawLeaves` decides, and such a leaf
   * becomes a `Raw` node.
   */
  readonly keepsLeaves?: boolean | undefined;
  /**
   * Maximum size in bytes of a block that is its own CID, in a file with the hash function
   * `identity`. Larger raw leaves are rejected, and other larger nodes get a digest by sha2-256.
   * Unlimited by default.
   */
  readonly maxInline?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

export class FileEditor {
  readonly #cid: CID;
  readonly #root: OpenNode;
  readonly #read: ReadBlock;
  readonly #sink: BlockSink;
  readonly #rawLeaves: boolean;
  readonly #keepsLeaves: boolean;
  readonly #chunker: () => Chunker;
  readonly #signal: AbortSignal | undefined;
  readonly #maxInline: number | undefined;
  /** The root, and the nodes below it that were opened and are not built again yet. */
  readonly #opened: Set<OpenNode>;

  /**
   * Whenever `read` is called, everything that was built was passed to the sink and is included in
   * `cids`. @throws NodeError
   */
  constructor(root: UnixfsNode, read: ReadBlock, sink: BlockSink, options: NewLeaves = {}) {
    const { rawLeaves, keepsLeaves = false, chunker, maxInline, signal } = options;
    this.#cid = root.cid;
    this.#maxInline = maxInline;
    this.#root = openNode(root, maxInline);
    this.#opened = new Set([this.#root]);
    this.#read = read;
    this.#sink = sink;
    this.#rawLeaves = rawLeaves ?? root.cid.version > 0;
    this.#keepsLeaves = keepsLeaves;
    this.#signal = signal;
    this.#chunker = chunker ?? (() => new SizeChunker(defaultChunkSize));
  }

  /** Size of the file in bytes. */
  get size(): number {
    return sizeOf(this.#root);
  }

  /** The parts of the future file that exist so far. */
  *cids(): Generator<CID, void, undefined> {
    for (const { parts } of this.#opened) for (const { cid } of parts) yield cid;
  }

  /** Truncates the file to zero bytes. The first leaf remains, empty. */
  async truncate(): Promise<void> {
    if (this.size > 0) await this.#empty(this.#root);
  }

  /**
   * Overwrites existing bytes from `offset` on. Content beyond the end of the file stays in
   * `content`.
   */
  async overwrite(offset: number, content: ByteReader): Promise<void> {
    if (offset < this.size && (await content.more())) await this.#overwrite(this.#root, offset, content);
  }

  append(content: AsyncIterable<Uint8Array>): Promise<void> {
    return this.#append(content, this.#chunker);
  }

  /** Appends zeros until the file has a size. */
  async extend(size: number): Promise<void> {
    if (size > this.size)
      await this.#append(zerosOf(size - this.size, this.#signal), () => new SizeChunker(ZERO_CHUNK));
  }

  /**
   * Passes the root to the sink and returns it. If the file has a time and has changed, its time
   * becomes the current one.
   *
   * @param joinsLeaf replace a root that has only one raw leaf, and neither mode nor time, by that
   * leaf, if new leaves are raw
   */
  async finish(joinsLeaf = false): Promise<FilePart> {
    const root = this.#root;
    const [only, second] = root.parts;
    const isBare = !root.raw && !root.data?.length && root.mode === undefined && root.mtime === undefined;
    if (joinsLeaf && this.#rawLeaves && isBare && only?.cid.code === raw && second === undefined) return only;
    if (root.mtime !== undefined) {
      const { cid } = await this.#build(root, () => undefined);
      if (!cid.equals(this.#cid)) root.mtime = unixNow();
    }
    return this.#build(root);
  }

  /** Builds a node that becomes a part of an open node. */
  async #close(node: OpenNode): Promise<FilePart> {
    const built = await this.#build(node);
    this.#opened.delete(node);
    return built;
  }

  async #build(
    { settings, raw: isRaw, data, type, parts, mode, mtime }: OpenNode,
    sink = this.#sink,
  ): Promise<FilePart> {
    if (!isRaw) return interior(parts, settings, sink, { type, data, mode, mtime });
    const bytes = data ?? nothing;
    const cid = await cidOf(raw, bytes, settings);
    await sink({ cid, bytes });
    return { cid, size: bytes.length, filesize: bytes.length };
  }

  async #open(cid: CID): Promise<OpenNode> {
    const node = unixfsNode(cid, await this.#read(cid));
    if (node === undefined) throw failure("UNIXFS_PART_INVALID", { cid: String(cid) });
    const opened = openNode(node, this.#maxInline);
    this.#opened.add(opened);
    return opened;
  }

  async #empty(node: OpenNode): Promise<void> {
    const at = node.parts.findIndex(({ filesize }) => filesize > 0);
    if (at < 0 || (node.data?.length ?? 0) > 0) {
      if (!node.raw && this.#keepsLeaves) node.settings = defaultCid;
      else if (!node.raw) node.type = "Raw";
      node.data = node.data && nothing;
      node.parts = [];
      return;
    }
    const first = await this.#open((node.parts[at] as FilePart).cid);
    await this.#empty(first);
    node.parts = [...node.parts.slice(0, at), await this.#close(first)];
  }

  async #overwrite(node: OpenNode, offset: number, content: ByteReader): Promise<void> {
    const own = node.data?.length ?? 0;
    if (node.data !== undefined && offset < own) {
      const changed = ownBytes(node.data);
      await content.fill(changed.subarray(offset));
      node.data = changed;
    }
    let start = own;
    for (const [at, part] of node.parts.entries()) {
      const end = start + part.filesize;
      if (end > offset && part.filesize > 0) {
        if (!(await content.more())) return;
        const below = await this.#open(part.cid);
        requireSize(below, part);
        await this.#overwrite(below, Math.max(0, offset - start), content);
        node.parts[at] = await this.#close(below);
      }
      start = end;
    }
  }

  async #append(content: AsyncIterable<Uint8Array>, chunker: () => Chunker): Promise<void> {
    const root = this.#root;
    const { settings } = root;
    const rawLeaves = this.#rawLeaves || (this.#keepsLeaves && root.raw);
    // Leaves are built before they are used. So the nodes to which they are appended must be
    // fetched before any leaf exists.
    await this.#openLast(root);
    const leaves = new Leaves(
      content,
      { ...settings, chunker, rawLeaves, leafType: "Raw", signal: this.#signal },
      this.#sink,
    );
    try {
      if (!(await leaves.more())) return;
      if (root.raw) await this.#wrap(root);
      await new Trickle(leaves, settings, this.#sink, (cid) => this.#open(cid)).append(root);
    } finally {
      await leaves.close();
    }
  }

  /** Opens the last node at each depth, where new content is appended. */
  async #openLast({ parts }: OpenNode): Promise<void> {
    const last = parts.length > MAX_LINKS ? parts.at(-1) : undefined;
    if (last !== undefined) await this.#openLast(await this.#open(last.cid));
  }

  /** A raw block cannot have parts, so it becomes the first part of a new node. */
  async #wrap(root: OpenNode): Promise<void> {
    root.parts = [await this.#build(root)];
    Object.assign(root, { raw: false, type: "File", data: undefined });
  }
}

/** @throws NodeError for a node that does not belong to a file */
function openNode({ cid, links, unixfs }: UnixfsNode, maxInline: number | undefined): OpenNode {
  const { type, data, blocksizes = [], mode, mtime } = unixfs;
  if ((type !== "File" && type !== "Raw") || blocksizes.length < links.length) {
    throw failure("UNIXFS_PART_INVALID", { cid: String(cid) });
  }
  const parts = links.map((link, at) => ({ cid: link.cid, size: link.size, filesize: blocksizes[at] as number }));
  const settings = { ...settingsOf(cid), ...(maxInline !== undefined && { maxInline, hashOfLarge: sha256 }) };
  return { settings, raw: cid.code === raw, type, data, parts, mode, mtime };
}

/**
 * Requires that a node has as many bytes as its parent claims. With wrong sizes, offsets could not
 * be found, and few blocks could claim an endless file.
 */
function requireSize(node: OpenNode, { cid, filesize }: FilePart): void {
  const size = sizeOf(node);
  if (size !== filesize)
    throw failure("UNIXFS_INVALID", {
      reason: `the file cannot be changed: ${cid} has ${size} bytes, not ${filesize} as it says`,
    });
}

async function* zerosOf(length: number, signal: AbortSignal | undefined): AsyncGenerator<Uint8Array, void, undefined> {
  for (let left = length; left > 0; left -= zeroes.length) {
    signal?.throwIfAborted();
    yield left < zeroes.length ? zeroes.subarray(0, left) : zeroes;
  }
}

/**
 * Returns how far a trickle node is filled: the depth of its last subtrees, and how many of that
 * depth it has.
 */
function filledTo({ parts }: OpenNode): { readonly depth: number; readonly repeat: number } {
  const subtrees = parts.length - MAX_LINKS;
  if (subtrees < 0) return { depth: 0, repeat: 0 };
  return { depth: Math.floor(subtrees / TRICKLE_REPEAT) + 1, repeat: subtrees % TRICKLE_REPEAT };
}

/**
 * Appends as the reference does. It fills the nodes that an earlier append has left incomplete, but
 * then continues at other depths than a file that is laid out at once. The depths below are those
 * of the reference.
 */
class Trickle {
  readonly #leaves: Leaves;
  readonly #settings: CidSettings;
  readonly #sink: BlockSink;
  readonly #open: (cid: CID) => Promise<OpenNode>;

  constructor(leaves: Leaves, settings: CidSettings, sink: BlockSink, open: (cid: CID) => Promise<OpenNode>) {
    this.#leaves = leaves;
    this.#settings = settings;
    this.#sink = sink;
    this.#open = open;
  }

  async append(root: OpenNode): Promise<void> {
    let { depth, repeat } = filledTo(root);
    if (depth === 0) {
      await fillLayer(root.parts, this.#leaves);
      if (!(await this.#leaves.more())) return;
      depth = 1;
      repeat = 0;
    }
    await this.#fillLast(root, depth - 1, repeat);
    await this.#subtrees(root, depth + 1, Number.POSITIVE_INFINITY);
  }

  /** Fills the last subtree, and adds the missing subtrees of its depth. */
  async #fillLast(node: OpenNode, depth: number, repeat: number): Promise<void> {
    if (node.parts.length <= MAX_LINKS) return;
    const last = await this.#open((node.parts.at(-1) as FilePart).cid);
    await this.#fill(last, depth - 1);
    node.parts[node.parts.length - 1] = await this.#build(last);
    if (repeat > 0) await this.#repeat(node, depth, repeat);
  }

  async #fill(node: OpenNode, depthLimit: number): Promise<void> {
    if (depthLimit === 0 || !(await this.#leaves.more())) return;
    let { depth, repeat } = filledTo(node);
    if (depth === 0) {
      await fillLayer(node.parts, this.#leaves);
      depth = 1;
      repeat = 0;
    }
    if (depth === depthLimit) return;
    await this.#fillLast(node, depth, repeat);
    await this.#subtrees(node, depth + 1, depthLimit);
  }

  async #subtrees(node: OpenNode, from: number, depthLimit: number): Promise<void> {
    for (let depth = from; depth < depthLimit && (await this.#leaves.more()); depth += 1) {
      await this.#repeat(node, depth, 0);
    }
  }

  async #repeat(node: OpenNode, depth: number, from: number): Promise<void> {
    for (let repeat = from; repeat < TRICKLE_REPEAT && (await this.#leaves.more()); repeat += 1) {
      node.parts.push(await trickleTree(this.#leaves, this.#settings, this.#sink, { depthLimit: depth }));
    }
  }

  #build({ settings, type, data, parts, mode, mtime }: OpenNode): Promise<FilePart> {
    return interior(parts, settings, this.#sink, { type, data, mode, mtime });
  }
}

/** Stores tar archives as DAGs, for `tar/add`. */

import type { PbLink } from "../../formats/dag_pb/dag_pb.ts";
import { readTar, type TarEntry } from "../../formats/tar/read.ts";
import { writeHeader } from "../../formats/tar/write.ts";
import { parseChunker } from "../../formats/unixfs/chunker/parse.ts";
import type { PreemptibleBatch } from "../../storage/blockstore/preemptible_batch.ts";
import { failure } from "../../util/errors.ts";
import { validUtf8 } from "../../util/go/text.ts";
import { trimBoth } from "../../util/trim.ts";
import { decodeObject } from "../dag/object/node.ts";
import type { ReadBlock } from "../dag/reader.ts";
import { type BlockSink, type Built, buildNode, defaultCid } from "../unixfs/build.ts";
import { importFile } from "../unixfs/import_file.ts";

/** Data of the root node. */
export const rootData: Uint8Array = Buffer.from("ipfs/tar");
/** Name of the link from an entry to its content. Names of entries begin with a dash. */
export const contentLink = "data";

/**
 * Maximum number of nodes without an entry of their own: a name may have almost as many components
 * as bytes.
 */
const MAX_IMPLIED = 250_000;

const contentSettings = { ...defaultCid, chunker: parseChunker("rabin"), rawLeaves: false, trickle: false };

/** A position in the tree. */
interface ArchiveBranch {
  /** The stored node of the entry at this position; undefined if no entry has this name. */
  entry: Built | undefined;
  children: Map<string, ArchiveBranch> | undefined;
}

/**
 * Stores an archive as it arrives. Only names and CIDs stay in memory. A later entry replaces an
 * earlier one of the same name, with everything below it.
 *
 * @throws NodeError for malformed archives
 */
export async function addArchive(
  source: AsyncIterable<Uint8Array>,
  batch: Pick<PreemptibleBatch, "add" | "flush">,
  read: ReadBlock,
): Promise<Built> {
  const tree = new ArchiveTree();
  try {
    for await (const entry of readTar(source)) tree.put(entry.header.name, await addEntry(entry, batch.add));
  } finally {
    await batch.flush();
  }
  const root = await tree.build(read, batch.add);
  await batch.flush();
  return root;
}

async function addEntry({ header, body }: TarEntry, sink: BlockSink): Promise<Built> {
  const data = writeHeader(header);
  const links: PbLink[] = [];
  if (header.size > 0) {
    const { cid, size } = await importFile(body, contentSettings, sink);
    links.push({ name: contentLink, cid, size });
  }
  return buildNode({ data, links }, defaultCid, sink);
}

class ArchiveTree {
  readonly #root: ArchiveBranch = { entry: undefined, children: undefined };
  #implied = 0;

  put(path: string, entry: Built): void {
    const names = trimBoth(path, "/").split("/");
    let branch = this.#root;
    for (const name of names) branch = this.#below(branch, name);
    if (branch.entry === undefined) this.#implied -= 1;
    branch.entry = entry;
    branch.children = undefined;
  }

  #below(branch: ArchiveBranch, name: string): ArchiveBranch {
    branch.children ??= new Map();
    const key = `-${name}`;
    const found = branch.children.get(key);
    if (found !== undefined) return found;
    this.#implied += 1;
    if (this.#implied > MAX_IMPLIED) {
      throw failure("TAR_INVALID", {
        reason: `archive/tar: paths of this archive lead over more than ${MAX_IMPLIED} unnamed directories`,
      });
    }
    const made: ArchiveBranch = { entry: undefined, children: undefined };
    branch.children.set(key, made);
    return made;
  }

  /** Builds the nodes, children before parents. Iterative, because paths may be long. */
  async build(read: ReadBlock, sink: BlockSink): Promise<Built> {
    const built = new Map<ArchiveBranch, Built>();
    const stack: ArchiveBranch[] = [this.#root];
    for (let branch = stack.at(-1); branch !== undefined; branch = stack.at(-1)) {
      const children = [...(branch.children?.values() ?? [])];
      const open = children.filter((child) => child.children !== undefined && !built.has(child));
      if (open.length > 0) {
        for (const child of open) stack.push(child);
        continue;
      }
      stack.pop();
      const node = await this.#buildOne(branch, built, read, sink);
      for (const child of children) built.delete(child);
      built.set(branch, node);
    }
    return built.get(this.#root) as Built;
  }

  async #buildOne(
    branch: ArchiveBranch,
    built: ReadonlyMap<ArchiveBranch, Built>,
    read: ReadBlock,
    sink: BlockSink,
  ): Promise<Built> {
    const links: PbLink[] = [];
    for (const [key, child] of branch.children ?? []) {
      const { cid, size } = built.get(child) ?? (child.entry as Built);
      links.push({ name: utf8(key), cid, size });
    }
    if (branch.entry === undefined) {
      return buildNode({ data: branch === this.#root ? rootData : undefined, links }, defaultCid, sink);
    }
    const { cid } = branch.entry;
    const own = decodeObject(cid, await read(cid));
    return buildNode({ data: own.data, links: [...own.links, ...links] }, defaultCid, sink);
  }
}

/** Names are bytes, one per character. */
const utf8 = (text: string): string => Buffer.from(validUtf8(Buffer.from(text, "latin1"))).toString();

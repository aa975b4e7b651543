/** Listing directories. */
import type { CID } from "multiformats/cid";
import { inSession } from "../content/dag/reader.ts";
import { alone, type Describing, described } from "../content/unixfs/children.ts";
import { entryPages } from "../content/unixfs/list.ts";
import { fileSize, isDirectory } from "../content/unixfs/node.ts";
import { openNode } from "../content/unixfs/open.ts";
import { dagPb, raw } from "../formats/cid/codecs.ts";
import { castCid } from "../formats/cid/text.ts";
import { namedLinks } from "../formats/ipld/links.ts";
import type { ModeAndTime } from "../formats/unixfs/format.ts";
import type { LowLevelNode } from "../node/low_level_node.ts";
import { type EntryCodec, SortedRuns } from "../storage/sorted_runs.ts";
import { oneByOne } from "../util/async/one_by_one.ts";
import { type CallOptions, type IpfsPath, listOf, pathText, readOptions } from "./common.ts";
import { factsOf, type ShownFacts, shownFacts } from "./mode_and_time.ts";

export interface LsOptions extends CallOptions {
  /** Read each entry to determine its type; true by default. */
  readonly resolveType?: boolean | undefined;
  /**
   * Read each entry to determine its size; true by default. Entries are read if either option is
   * true.
   */
  readonly size?: boolean | undefined;
  /** Yield entries as they are found, in the order of the directory instead of sorted by name. */
  readonly stream?: boolean | undefined;
}

export interface LsEntry extends ShownFacts {
  readonly name?: string;
  readonly path: string;
  /** Size of a file's content in bytes; 0 for a directory. */
  readonly size?: number;
  readonly cid: CID;
  readonly type: "dir" | "file";
}

/** A link with all fields of the RPC API, and one additional field. */
export interface LsLink extends ModeAndTime {
  readonly name: string;
  readonly cid: CID;
  /** Bytes of all blocks below, as the directory states it; the entry need not be read for it. */
  readonly tsize: number;
  readonly size: number;
  /** `unknown` for an entry that was not read, or that is not UnixFS. */
  readonly type: "unknown" | "directory" | "file" | "symlink";
  /** Target of a symlink; otherwise empty. */
  readonly target: string;
}

/** The path of an argument, or a link of the argument reported before. */
export type LsRow = { readonly path: string } | { readonly link: LsLink };

/** Like `LsRow`, with several links at a time. */
export type LsPage = { readonly path: string } | { readonly links: readonly LsLink[] };

export interface LsApi {
  readonly ls: {
    /**
     * Lists the entries of a directory, or the links of another node. A file, and a directory
     * without entries, yield one entry without a name. @throws NodeError
     */
    (path: IpfsPath, options?: LsOptions): AsyncIterable<LsEntry>;
    /**
     * Lists several objects one after the other: the path of each, then its links. @throws
     * NodeError
     */
    rows(paths: readonly IpfsPath[], options?: LsOptions): AsyncIterable<LsRow>;
    /** Like `rows`, in pages, which cost less if there are many links. @throws NodeError */
    pages(paths: readonly IpfsPath[], options?: LsOptions): AsyncIterable<LsPage>;
  };
}

export function lsApi(node: LowLevelNode): LsApi {
  async function opened(
    path: string,
    { resolveType = true, size = true, ...options }: LsOptions,
  ): Promise<OpenedObject> {
    const session = inSession({ ...readOptions(options), buffers: node.blocks.buffers });
    const read = node.reader(session);
    const { cid } = await node.resolve(path, session);
    const bytes = await read(cid);
    const root = cid.code === dagPb ? openNode(cid, bytes) : undefined;
    const links = root !== undefined && isDirectory(root) ? entryPages(root, read) : alone(namedLinks(cid, bytes));
    const pages = described(links, read, resolveType || size ? looking : notLooking);
    return { pages, isSorted: root?.unixfs.type !== "HAMTShard" };
  }

  /** Yields the links of one object as they are found; children are read ahead. */
  async function* unsorted(path: string, options: LsOptions): AsyncGenerator<readonly LsLink[]> {
    yield* (await opened(path, options)).pages;
  }

  /** Yields the links of one object sorted by name, after all of them are found. */
  async function* sorted(path: string, options: LsOptions): AsyncGenerator<readonly LsLink[]> {
    const { pages, isSorted } = await opened(path, options);
    // The links of a single block are all in memory, in the order of the block.
    if (isSorted) yield* await Array.fromAsync(pages);
    else yield* sortedOnDisk(node.scratch, pages);
  }

  const listed = (path: string, options: LsOptions) =>
    options.stream === true ? unsorted(path, options) : sorted(path, options);

  async function* ls(path: IpfsPath, options: LsOptions = {}): AsyncGenerator<LsEntry> {
    const text = pathText(path);
    let count = 0;
    for await (const link of oneByOne(listed(text, options))) {
      count += 1;
      const { name, size, cid } = link;
      const type = link.type === "directory" ? "dir" : "file";
      yield { name, path: `${text}/${name}`, size, cid, type, ...shownFacts(link) };
    }
    if (count > 0 || options.stream === true) return;
    yield { path: text, cid: (await node.resolve(text, inSession(readOptions(options)))).cid, type: "file" };
  }

  async function* pages(paths: readonly IpfsPath[], options: LsOptions = {}): AsyncGenerator<LsPage> {
    for (const path of listOf(paths).map(pathText)) {
      // The path is yielded only if the object can be listed.
      let named = false;
      for await (const links of listed(path, options)) {
        if (!named) yield { path };
        named = true;
        if (links.length > 0) yield { links };
      }
      if (!named) yield { path };
    }
  }

  async function* rows(paths: readonly IpfsPath[], options: LsOptions = {}): AsyncGenerator<LsRow> {
    for await (const page of pages(paths, options)) {
      if ("path" in page) yield page;
      else for (const link of page.links) yield { link };
    }
  }

  return { ls: Object.assign(ls, { rows, pages }) };
}

/** Sorts links by name; if there are many, in files below `folder`. */
async function* sortedOnDisk(folder: string, pages: OpenedObject["pages"]): AsyncGenerator<readonly LsLink[]> {
  const links = new SortedRuns<LsLink>(folder, linkCodec);
  try {
    for await (const page of pages) {
      for (const link of page) {
        const stored = links.add(link.name, link);
        if (stored !== undefined) await stored;
      }
    }
    yield* links.pages();
  } finally {
    await links.close();
  }
}

interface OpenedObject {
  readonly pages: AsyncIterable<readonly LsLink[]>;
  /** Whether the links are sorted by name already. */
  readonly isSorted: boolean;
}

const linkTypes: readonly LsLink["type"][] = ["unknown", "directory", "file", "symlink"];
/** Bytes before the CID: type, both sizes, and the length of the CID. */
const LINK_HEAD = 1 + 8 + 8 + 4;

/** The fields that most links lack follow the CID as JSON. */
const linkCodec: EntryCodec<LsLink> = {
  encode({ name: _, cid, tsize, size, type, ...rest }) {
    const isPlain = rest.target === "" && rest.mode === undefined && rest.mtime === undefined;
    const more = isPlain ? "" : JSON.stringify(rest);
    const at = LINK_HEAD + cid.bytes.length;
    const bytes = Buffer.allocUnsafe(at + Buffer.byteLength(more));
    bytes[0] = linkTypes.indexOf(type);
    bytes.writeDoubleLE(tsize, 1);
    bytes.writeDoubleLE(size, 9);
    bytes.writeUInt32LE(cid.bytes.length, 17);
    bytes.set(cid.bytes, LINK_HEAD);
    if (!isPlain) bytes.write(more, at);
    return bytes;
  },
  decode(name, given) {
    const bytes = Buffer.from(given.buffer, given.byteOffset, given.length);
    const at = LINK_HEAD + bytes.readUInt32LE(17);
    const cid = castCid(new Uint8Array(bytes.subarray(LINK_HEAD, at)));
    const type = linkTypes[bytes[0] as number] as LsLink["type"];
    const plain = { name, cid, tsize: bytes.readDoubleLE(1), size: bytes.readDoubleLE(9), type, target: "" };
    return at === bytes.length ? plain : { ...plain, ...JSON.parse(bytes.toString("utf8", at)) };
  },
};

/** Describes the targets of links; children whose CID determines the result are not read. */
const looking: Describing<LsLink> = {
  unread({ name, cid, size }) {
    if (cid.code === raw) return { name, cid, tsize: size, type: "file", size, target: "" };
    return cid.code === dagPb ? undefined : { name, cid, tsize: size, type: "unknown", size: 0, target: "" };
  },
  known({ name, cid, size: tsize }, { type, size }) {
    const isFile = type === "File" || type === "Raw";
    return { name, cid, tsize, type: isFile ? "file" : "directory", size: isFile ? size : 0, target: "" };
  },
  read({ name, cid, size: tsize }, bytes) {
    const node = openNode(cid, bytes);
    const { type, data } = node.unixfs;
    const facts = factsOf(node.unixfs);
    if (type === "Symlink") {
      const target = Buffer.from(data ?? []).toString();
      return { name, cid, tsize, type: "symlink", size: fileSize(node), target, ...facts };
    }
    if (type === "File" || type === "Raw") {
      return { name, cid, tsize, type: "file", size: fileSize(node), target: "", ...facts };
    }
    return { name, cid, tsize, type: "directory", size: 0, target: "", ...facts };
  },
};

/** Describes links by their CIDs alone, without reading blocks. */
const notLooking: Describing<LsLink> = {
  ...looking,
  unread: ({ name, cid, size: tsize }) =>
    cid.code === raw
      ? { name, cid, tsize, type: "file", size: tsize, target: "" }
      : { name, cid, tsize, type: "unknown", size: 0, target: "" },
};

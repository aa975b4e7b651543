/** Listing directories. */
import { CID } from "multiformats/cid";
import { inSession, type ReadBlock } from "../content/dag/reader.ts";
import { entries } from "../content/unixfs/list.ts";
import { fileSize, isDirectory } from "../content/unixfs/node.ts";
import { openNode } from "../content/unixfs/open.ts";
import { dagPb, raw } from "../formats/cid/codecs.ts";
import type { PbLink } from "../formats/dag_pb/dag_pb.ts";
import { namedLinks } from "../formats/ipld/links.ts";
import type { ModeAndTime } from "../formats/unixfs/format.ts";
import type { LowLevelNode } from "../low_level_node.ts";
import { ExternalSortedMap, type ValueCodec } from "../storage/external_sorted_map.ts";
import { mapConcurrent } from "../util/async/map_concurrent.ts";
import { type CallOptions, type IpfsPath, listOf, pathText, reading } from "./common.ts";
import { factsOf, type ShownFacts, shownFacts } from "./mode_and_time.ts";

export interface LsOptions extends CallOptions {
  /** Read each entry to determine its type; true by default. */
  readonly resolveType?: boolean | undefined;
  /** Read each entry to determine its size; true by default. Entries are read if either option is true. */
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

/** A link, with all fields of the RPC API, and one more. */
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

export interface LsApi {
  readonly ls: {
    /**
     * Entries of a directory, or links of another node; for a file, and for a directory without any, one entry that has no
     * name. @throws NodeError
     */
    (path: IpfsPath, options?: LsOptions): AsyncIterable<LsEntry>;
    /** Lists several objects one after the other: the path of each, then its links. @throws NodeError */
    rows(paths: readonly IpfsPath[], options?: LsOptions): AsyncIterable<LsRow>;
  };
}

/** Number of children that are read concurrently. */
const MAX_CHILDREN = 16;

export function lsApi(node: LowLevelNode): LsApi {
  /** The links of one object in its order; children are read ahead. */
  async function* linksOf(path: string, { resolveType = true, size = true, ...options }: LsOptions) {
    const session = inSession(reading(options));
    const read = node.reader(session);
    const { cid } = await node.resolve(path, session);
    const bytes = await read(cid);
    const opened = cid.code === dagPb ? openNode(cid, bytes) : undefined;
    const links = opened !== undefined && isDirectory(opened) ? entries(opened, read) : namedLinks(cid, bytes);
    const looking = resolveType || size ? read : undefined;
    yield* mapConcurrent(links, MAX_CHILDREN, async (link) => ({
      name: link.name,
      cid: link.cid,
      tsize: link.size,
      ...(await kindOf(link, looking)),
    }));
  }

  /** The same, sorted by name. */
  async function* sorted(path: string, options: LsOptions): AsyncGenerator<LsLink> {
    const links = new ExternalSortedMap<LsLink>(node.scratch, linkCodec);
    try {
      let count = 0;
      for await (const link of linksOf(path, options)) {
        // Links of one name keep their order.
        const stored = links.set(0, `${link.name}\0${String(count).padStart(10, "0")}`, link);
        if (stored !== undefined) await stored;
        count += 1;
      }
      for await (const page of links.pages(0)) for (const [, link] of page) yield link;
    } finally {
      await links.clear();
    }
  }

  const listed = (path: string, options: LsOptions) =>
    options.stream === true ? linksOf(path, options) : sorted(path, options);

  async function* ls(path: IpfsPath, options: LsOptions = {}): AsyncGenerator<LsEntry> {
    const text = pathText(path);
    let count = 0;
    for await (const link of listed(text, options)) {
      count += 1;
      const { name, size, cid } = link;
      const type = link.type === "directory" ? "dir" : "file";
      yield { name, path: `${text}/${name}`, size, cid, type, ...shownFacts(link) };
    }
    if (count > 0 || options.stream === true) return;
    yield { path: text, cid: (await node.resolve(text, inSession(reading(options)))).cid, type: "file" };
  }

  async function* rows(paths: readonly IpfsPath[], options: LsOptions = {}): AsyncGenerator<LsRow> {
    for (const path of listOf(paths).map(pathText)) {
      // The path is yielded only if the object can be listed.
      let named = false;
      for await (const link of listed(path, options)) {
        if (!named) yield { path };
        named = true;
        yield { link };
      }
      if (!named) yield { path };
    }
  }

  return { ls: Object.assign(ls, { rows }) };
}

const linkCodec: ValueCodec<LsLink> = {
  encode: ({ cid, ...link }) => Buffer.from(JSON.stringify([Buffer.from(cid.bytes).toString("base64"), link])),
  decode(bytes) {
    const [cid, link] = JSON.parse(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString());
    return { ...link, cid: CID.decode(new Uint8Array(Buffer.from(cid, "base64"))) };
  },
};

/** Describes the target of a link; children whose CID says enough are not read. */
async function kindOf(
  { cid, size }: PbLink,
  read: ReadBlock | undefined,
): Promise<Pick<LsLink, "type" | "size" | "target" | "mode" | "mtime">> {
  if (cid.code === raw) return { type: "file", size, target: "" };
  if (cid.code !== dagPb || read === undefined) return { type: "unknown", size: 0, target: "" };
  const node = openNode(cid, await read(cid));
  const { type, data } = node.unixfs;
  const facts = factsOf(node.unixfs);
  if (type === "Symlink") {
    return { type: "symlink", size: fileSize(node), target: Buffer.from(data ?? []).toString(), ...facts };
  }
  if (type === "File" || type === "Raw") return { type: "file", size: fileSize(node), target: "", ...facts };
  return { type: "directory", size: 0, target: "", ...facts };
}

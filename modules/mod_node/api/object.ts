/** The older commands for dag-pb nodes; `dag` has replaced them. */
import type { CID } from "multiformats/cid";
import { type Change, diff } from "../content/dag/object/diff.ts";
import { encodedObject } from "../content/dag/object/input.ts";
import { pbBlock } from "../content/dag/object/node.ts";
import { dagPb, raw } from "../formats/cid/codecs.ts";
import { cumulativeSize, decodePb } from "../formats/dag_pb/dag_pb.ts";
import type { DagPbLink, DagPbNode } from "../formats/dag_pb/pb_object.ts";
import { linksOf } from "../formats/ipld/links.ts";
import type { LowLevelNode } from "../node/low_level_node.ts";
import { failure } from "../util/errors.ts";
import { type ByteSource, type CallOptions, type IpfsPath, pathText, piecesOf, readOptions } from "./common.ts";
import { dagApi } from "./dag.ts";
import {
  emptyDirectory,
  linkJs,
  type ObjectEdit,
  type ObjectEditOptions,
  objectStore,
  type StoredObject,
} from "./object_store.ts";

export type { Change as ObjectChange } from "../content/dag/object/diff.ts";
export type { ObjectEdit, ObjectEditOptions, StoredObject } from "./object_store.ts";

export interface ObjectNewOptions extends CallOptions {
  /** `unixfs-dir` for an empty directory, or `empty` (default) for an empty node. */
  readonly template?: string | undefined;
}

export interface ObjectPutOptions extends CallOptions {
  /** Pin it recursively. */
  readonly pin?: boolean | undefined;
}

export interface ObjectImportOptions extends ObjectPutOptions {
  /** Encoding of the input: `json` (default), `xml` or `protobuf`. */
  readonly inputenc?: string | undefined;
  /** Encoding of the data in JSON and XML: `text` (default) or `base64`. */
  readonly datafieldenc?: string | undefined;
}

export interface ObjectStat {
  readonly Hash: CID;
  readonly NumLinks: number;
  readonly BlockSize: number;
  readonly LinksSize: number;
  readonly DataSize: number;
  readonly CumulativeSize: number;
}

/** The name of a link, in either spelling. */
export type LinkName = { readonly Name?: string | undefined } | { readonly name: string };
/** The target of a link. */
export type LinkTarget = LinkName & ({ readonly Hash: IpfsPath } | { readonly cid: IpfsPath });

export interface AddLinkOptions extends CallOptions {
  /** Create missing nodes along the path. */
  readonly create?: boolean | undefined;
}

export interface ObjectPatchApi {
  /**
   * Adds or replaces a link, whose name may be a path. Resolves to the CID of the changed copy.
   * @throws NodeError
   */
  addLink(cid: IpfsPath, link: LinkTarget, options?: AddLinkOptions): Promise<CID>;
  rmLink(cid: IpfsPath, link: LinkName, options?: CallOptions): Promise<CID>;
  appendData(cid: IpfsPath, data: ByteSource, options?: CallOptions): Promise<CID>;
  setData(cid: IpfsPath, data: ByteSource, options?: CallOptions): Promise<CID>;
}

export interface ObjectApi {
  /** Stores a node made from a template. @throws NodeError for an unknown template */
  readonly new: (options?: ObjectNewOptions) => Promise<CID>;
  /** Stores a node. @throws NodeError for an invalid node */
  put(node: DagPbNode, options?: ObjectPutOptions): Promise<CID>;
  /** Stores a node that is given in one of the encodings of `inputenc`. @throws NodeError */
  import(input: ByteSource, options?: ObjectImportOptions): Promise<StoredObject>;
  /** @throws NodeError for a node of another codec */
  get(cid: IpfsPath, options?: CallOptions): Promise<Required<DagPbNode>>;
  data(cid: IpfsPath, options?: CallOptions): Promise<Uint8Array>;
  /** Resolves to the links of a node of any codec. @throws NodeError */
  links(cid: IpfsPath, options?: CallOptions): Promise<readonly Required<DagPbLink>[]>;
  /** Like `links`, with the CID of the node. */
  linksOf(cid: IpfsPath, options?: CallOptions): Promise<StoredObject>;
  /** Resolves to the sizes of a node; only dag-pb nodes have all of them. @throws NodeError */
  stat(cid: IpfsPath, options?: CallOptions): Promise<ObjectStat>;
  /** Resolves to the differences between the links of two DAGs. @throws NodeError */
  diff(one: IpfsPath, other: IpfsPath, options?: CallOptions): Promise<Change[]>;
  /** Stores a changed copy of a node, and of the nodes above it. @throws NodeError */
  edit(root: IpfsPath, change: ObjectEdit, options?: ObjectEditOptions): Promise<StoredObject>;
  readonly patch: ObjectPatchApi;
}

const templates: ReadonlyMap<string, Uint8Array> = new Map([
  ["empty", new Uint8Array()],
  ["unixfs-dir", emptyDirectory],
]);

export function objectApi(node: LowLevelNode): ObjectApi {
  const { blockAt, nodeAt, linksAt, stored, edit } = objectStore(node);
  const edited = async (...given: Parameters<typeof edit>) => (await edit(...given)).cid;
  const dag = dagApi(node);

  return {
    async new({ template = "empty", ...options } = {}) {
      const bytes = templates.get(template);
      if (bytes === undefined) throw failure("ARGUMENT_INVALID", { reason: `unknown node type: ${template}` });
      return (await stored([await pbBlock(bytes)], options)).cid;
    },
    put: (given, options = {}) => dag.put(given, { ...options, storeCodec: "dag-pb", hashAlg: "sha2-256" }),
    async import(input, { inputenc = "json", datafieldenc = "text", ...options } = {}) {
      const bytes = await encodedObject(piecesOf(input), inputenc, datafieldenc);
      return stored([await pbBlock(bytes)], options);
    },
    async get(path, options = {}) {
      const { links, data = new Uint8Array() } = await nodeAt(path, options);
      return { Data: data, Links: links.map(linkJs) };
    },
    async data(path, options = {}) {
      return (await nodeAt(path, options)).data ?? new Uint8Array();
    },
    links: async (path, options) => (await linksAt(path, options)).links,
    linksOf: linksAt,
    async stat(path, options = {}) {
      const { cid, bytes } = await blockAt(path, options);
      linksOf(cid, bytes);
      return { Hash: cid, ...sizesOf(cid.code, bytes) };
    },
    async diff(one, other, options = {}) {
      const how = readOptions(options);
      const before = await node.resolve(pathText(one), how);
      const after = await node.resolve(pathText(other), how);
      return diff(before.cid, after.cid, node.reader(how), how.signal);
    },
    edit,
    patch: {
      addLink: (cid, link, { create, ...options } = {}) =>
        edited(cid, { addLink: nameOf(link), target: "Hash" in link ? link.Hash : link.cid, create }, options),
      rmLink: (cid, link, options) => edited(cid, { rmLink: nameOf(link) }, options),
      appendData: (cid, data, options) => edited(cid, { appendData: data }, options),
      setData: (cid, data, options) => edited(cid, { setData: data }, options),
    },
  };
}

const nameOf = (link: LinkName): string => ("name" in link ? link.name : ((link as { Name?: string }).Name ?? ""));

/** Only dag-pb nodes have all of these sizes; the others are 0. */
function sizesOf(codec: number, bytes: Uint8Array): Omit<ObjectStat, "Hash"> {
  const none = { NumLinks: 0, BlockSize: 0, LinksSize: 0, DataSize: 0, CumulativeSize: 0 };
  if (codec === raw) return { ...none, DataSize: bytes.length, CumulativeSize: bytes.length };
  if (codec !== dagPb) return none;
  const { data, links } = decodePb(bytes);
  const DataSize = data?.length ?? 0;
  return {
    NumLinks: links.length,
    BlockSize: bytes.length,
    LinksSize: bytes.length - DataSize,
    DataSize,
    CumulativeSize: cumulativeSize({ length: bytes.length, links }),
  };
}

/**
 * dag-pb nodes in the form that the JavaScript client libraries use. A field that the block omits
 * is missing in the object, too.
 */
import type { CID } from "multiformats/cid";
import { CID as Cid } from "multiformats/cid";
import { byteText, textBytes } from "../../util/byte_text.ts";
import { failure } from "../../util/errors.ts";
import { FieldReader, fieldLength, writeField } from "../protobuf/fields.ts";
import { varintLength, writeVarint } from "../protobuf/varint.ts";
import { compareNames, linkMessage, nodeMessage, parsePb } from "./dag_pb.ts";

export interface DagPbLink {
  readonly Hash: CID;
  readonly Name?: string;
  /** Total size in bytes of the linked node and everything below it. */
  readonly Tsize?: number;
}

export interface DagPbNode {
  readonly Data?: Uint8Array;
  readonly Links: readonly DagPbLink[];
}

/** @throws NodeError if the bytes are not a dag-pb node */
export function decodeDagPb(bytes: Uint8Array): DagPbNode {
  parsePb(bytes);
  const links: DagPbLink[] = [];
  let data: Uint8Array | undefined;
  const reader = new FieldReader(bytes, nodeMessage);
  while (reader.next()) {
    if (reader.field === 1) data = reader.bytes;
    else if (reader.field === 2) links.push(readLink(reader.bytes));
  }
  return data === undefined ? { Links: links } : { Data: data, Links: links };
}

function readLink(bytes: Uint8Array): DagPbLink {
  const link: { Hash?: CID; Name?: string; Tsize?: number } = {};
  const reader = new FieldReader(bytes, linkMessage);
  while (reader.next()) {
    if (reader.field === 1) link.Hash = Cid.decode(reader.bytes);
    else if (reader.field === 2) link.Name = byteText(reader.bytes);
    else if (reader.field === 3) link.Tsize = reader.number;
  }
  return link as DagPbLink;
}

/** @throws NodeError if `node` does not have the form of a dag-pb node */
export function encodeDagPb(node: unknown): Uint8Array {
  requireNode(node);
  const links = node.Links.map(({ Hash, Name, Tsize }) => {
    const name = Name === undefined ? undefined : textBytes(Name);
    const size = Tsize === undefined ? 0 : 1 + varintLength(Tsize);
    const length = fieldLength(Hash.bytes.length) + (name === undefined ? 0 : fieldLength(name.length)) + size;
    return { hash: Hash.bytes, name, size: Tsize, length };
  });
  const dataLength = node.Data === undefined ? 0 : fieldLength(node.Data.length);
  const bytes = new Uint8Array(links.reduce((sum, { length }) => sum + fieldLength(length), dataLength));
  let at = 0;
  for (const { hash, name, size, length } of links) {
    bytes[at] = 0x12;
    at = writeField(bytes, writeVarint(bytes, at + 1, length), 0x0a, hash);
    if (name !== undefined) at = writeField(bytes, at, 0x12, name);
    if (size === undefined) continue;
    bytes[at] = 0x18;
    at = writeVarint(bytes, at + 1, size);
  }
  if (node.Data !== undefined) writeField(bytes, at, 0x0a, node.Data);
  return bytes;
}

const invalid = (reason?: string) =>
  failure("VALUE_NOT_ENCODABLE", { reason: `Invalid DAG-PB form${reason === undefined ? "" : ` (${reason})`}` });

const isPlain = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" &&
  value !== null &&
  !Array.isArray(value) &&
  !(value instanceof Uint8Array) &&
  Cid.asCID(value) === null;

const hasOnly = (value: object, names: readonly string[]) => Object.keys(value).every((name) => names.includes(name));

function requireNode(node: unknown): asserts node is DagPbNode {
  if (!isPlain(node)) throw invalid();
  if (!hasOnly(node, ["Data", "Links"])) throw invalid("extraneous properties");
  if (node.Data !== undefined && !(node.Data instanceof Uint8Array)) throw invalid("Data must be bytes");
  if (!Array.isArray(node.Links)) throw invalid("Links must be a list");
  let before: string | undefined;
  for (const link of node.Links) {
    requireLink(link);
    const { Name = "" } = link;
    if (before !== undefined && compareNames(before, Name) > 0) throw invalid("links must be sorted by Name bytes");
    before = Name;
  }
}

function requireLink(link: unknown): asserts link is DagPbLink {
  if (!isPlain(link)) throw invalid("bad link");
  if (!hasOnly(link, ["Hash", "Name", "Tsize"])) throw invalid("extraneous properties on link");
  const { Hash, Name, Tsize } = link;
  if (Hash === undefined) throw invalid("link must have a Hash");
  if (Cid.asCID(Hash) === null) throw invalid("link Hash must be a CID");
  if (Name !== undefined && typeof Name !== "string") throw invalid("link Name must be a string");
  if (Tsize === undefined) return;
  if (!Number.isSafeInteger(Tsize)) throw invalid("link Tsize must be an integer");
  if ((Tsize as number) < 0) throw invalid("link Tsize cannot be negative");
}

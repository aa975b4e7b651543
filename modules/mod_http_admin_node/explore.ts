/** Describes a block and its content. */
import { isUtf8 } from "node:buffer";
import type { NodeModule } from "modhost/node";
import { within } from "./failures.ts";
import type { Page } from "./paging.ts";
import type { DagData, DagNode } from "./types.ts";

/** Maximum number of characters of the content. */
const MAX_TEXT = 64 * 1024;
/** Maximum number of bytes that are shown in hexadecimal. */
const MAX_HEX = 4 * 1024;

const DAG_PB = 0x70;
const RAW = 0x55;

export interface ExploreRequest extends Page {
  /** Maximum seconds for the request. */
  readonly timeout: number;
  readonly isLocal: boolean;
  readonly signal: AbortSignal;
}

/** @throws NodeError */
export async function explore(
  node: NodeModule,
  path: string,
  { offset, limit, timeout, isLocal, signal }: ExploreRequest,
): Promise<DagNode> {
  const how = { signal: within(signal, timeout), offline: isLocal };
  const { namespace, cid, remainder } = await node.lowLevel.resolve(path, how);
  const was_here = await node.lowLevel.blocks.has(cid);
  const bytes = await node.block.get(cid, how);
  const links = await node.dag.links(cid, how).catch(() => []);
  const onPage = links.slice(offset, offset + limit);
  const { codec, hash } = await namesOf(node, cid.code, cid.multihash.code);
  return {
    path: ["", namespace, cid.toString(), ...remainder].join("/"),
    cid: cid.toString(),
    remainder: remainder.join("/"),
    version: cid.version,
    codec,
    hash: { name: hash, code: cid.multihash.code, digest: hex(cid.multihash.digest) },
    size: bytes.length,
    was_here,
    links: {
      total: links.length,
      offset,
      items: onPage.map(({ name, cid: child, size }) => ({ name, cid: child.toString(), size })),
    },
    ...(await unixfsOf(node, cid)),
    data: await dataOf(node, cid, bytes),
  };
}

type Cid = Awaited<ReturnType<NodeModule["lowLevel"]["resolve"]>>["cid"];

async function namesOf({ cid }: NodeModule, codec: number, hash: number) {
  const [codecs, hashes] = await Promise.all([cid.codecs(), cid.hashes()]);
  const nameOf = (all: typeof codecs, code: number) =>
    all.find((each) => each.code === code)?.name ?? `0x${code.toString(16)}`;
  // Names that differ from the codec names of version 0.9. People know these codecs by the names
  // here.
  const known: Readonly<Record<number, string>> = {
    [DAG_PB]: "dag-pb",
    [RAW]: "raw",
    113: "dag-cbor",
    297: "dag-json",
  };
  return { codec: known[codec] ?? nameOf(codecs, codec), hash: nameOf(hashes, hash) };
}

/** Resolves to the UnixFS properties of a block; empty if it is not a UnixFS node. */
async function unixfsOf(node: NodeModule, cid: Cid): Promise<Pick<DagNode, "unixfs">> {
  if (cid.code !== DAG_PB) return {};
  const found = await node.files.stat(`/ipfs/${cid}`, { offline: true }).catch(() => undefined);
  if (found === undefined) return {};
  return { unixfs: { type: found.type, size: found.type === "directory" ? found.cumulativeSize : found.size } };
}

async function dataOf(node: NodeModule, cid: Cid, bytes: Uint8Array): Promise<DagData> {
  if (cid.code === DAG_PB) {
    const { value } = await node.dag.get(cid, { offline: true }).catch(() => ({ value: undefined }));
    const { Data } = (value ?? {}) as { readonly Data?: Uint8Array };
    return bytesOf(value === undefined ? bytes : (Data ?? new Uint8Array()));
  }
  if (cid.code === RAW) return bytesOf(bytes);
  const json = await node.dag.json(`/ipfs/${cid}`, { offline: true }).catch(() => undefined);
  if (json === undefined) return bytesOf(bytes);
  return { form: "json", text: json.slice(0, MAX_TEXT), is_cut: json.length > MAX_TEXT, size: bytes.length };
}

function bytesOf(bytes: Uint8Array): DagData {
  const size = bytes.length;
  if (size > 0 && isUtf8(bytes) && !bytes.subarray(0, MAX_TEXT).some(isControl)) {
    const text = new TextDecoder().decode(bytes.subarray(0, MAX_TEXT)).replace(/\ufffd$/, "");
    return { form: "text", text, is_cut: size > MAX_TEXT, size };
  }
  return { form: "hex", text: hex(bytes.subarray(0, MAX_HEX)), is_cut: size > MAX_HEX, size };
}

/**
 * Control characters that text never contains, although they are valid UTF-8. Tab, line and page
 * ends, and escape are allowed.
 */
const isControl = (byte: number) => byte < 9 || (byte > 13 && byte < 32 && byte !== 27);

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString("hex");

/** What blocks are told apart by here: their multihash, whatever form of CID a peer uses for it. */
import { CID } from "multiformats/cid";
import { hashCoded, identity } from "../../formats/cid/hashes.ts";
import { varintLength, writeVarint } from "../../formats/protobuf/varint.ts";
import { NodeError } from "../../util/errors.ts";
import type { WireBlock } from "./message.ts";

const textOf = (bytes: Uint8Array): string =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("latin1");

export const keyOf = ({ multihash }: CID): string => textOf(multihash.bytes);

/** As `keyOf`, of the bytes of a CID, and no more of them is looked at. @throws Error when it is too long */
export function keyOfCid(cid: Uint8Array): string {
  checkLength(cid);
  if (cid[0] === prefix0[2] && cid[1] === prefix0[3]) return textOf(cid);
  const codec = cid.findIndex((byte) => byte < 0x80) + 1;
  return textOf(cid.subarray(codec + cid.subarray(codec).findIndex((byte) => byte < 0x80) + 1));
}

const prefix0 = Uint8Array.of(0, 0x70, 0x12, 0x20);

/** Version, codec, hash function and length of the digest. */
export function cidPrefix({ version, bytes, multihash }: CID): Uint8Array {
  return version === 0 ? prefix0 : bytes.subarray(0, bytes.length - multihash.digest.length);
}

interface HashForm {
  /** Of the hash function. */
  readonly code: number;
  /** Bytes of the digest. */
  readonly length: number;
}

/** A block without a prefix is one of version 0. */
const bare: HashForm = { code: 0x12, length: 32 };

/** Undefined for what is no prefix. */
function formOf(prefix: Uint8Array | undefined): HashForm | undefined {
  if (prefix === undefined) return bare;
  const numbers: number[] = [];
  let value = 0;
  let scale = 1;
  for (const byte of prefix) {
    value += (byte & 0x7f) * scale;
    scale *= 128;
    if (byte >= 0x80) continue;
    numbers.push(value);
    value = 0;
    scale = 1;
  }
  const [, , code, length] = numbers;
  return numbers.length === 4 && code !== undefined && length !== undefined ? { code, length } : undefined;
}

/** The key of a block that came: at once for small ones. Undefined for one whose hash cannot be made here. */
export function keyOfWireBlock({ prefix, data }: WireBlock): string | undefined | Promise<string | undefined> {
  const form = formOf(prefix);
  const hash = form && hashCoded(form.code);
  if (form === undefined || !hash?.allowed || hash.code === identity.code) return undefined;
  const digest = hash.digest?.(data);
  return digest instanceof Promise ? digest.then((made) => keyFor(form, made)) : digest && keyFor(form, digest);
}

function keyFor({ code, length }: HashForm, digest: Uint8Array): string | undefined {
  if (length > digest.length) return undefined;
  const head = new Uint8Array(varintLength(code) + varintLength(length));
  writeVarint(head, writeVarint(head, 0, code), length);
  return textOf(head) + textOf(digest.subarray(0, length));
}

/** The CID of a block that came, by its key; undefined for forms that there are not. */
export function cidOfWireBlock({ prefix }: WireBlock, key: string): CID | undefined {
  const multihash = Buffer.from(key, "latin1");
  try {
    return prefix === undefined || prefix[0] === 0
      ? CID.decode(multihash)
      : CID.decode(Buffer.concat([prefix.subarray(0, prefix.length - headLength(multihash)), multihash]));
  } catch {
    return undefined;
  }
}

/** Bytes of the hash function's code and the digest's length. */
function headLength(multihash: Uint8Array): number {
  const code = multihash.findIndex((byte) => byte < 0x80);
  return code + 1 + multihash.subarray(code + 1).findIndex((byte) => byte < 0x80) + 1;
}

/** Bytes of a CID that a peer may name; there are longer ones only of blocks that need no fetching. */
const MAX_CID_SIZE = 512;

function checkLength(cid: Uint8Array): void {
  if (cid.length > MAX_CID_SIZE) throw new NodeError("a CID that is too long");
}

/** A CID of its own, that keeps nothing else alive. @throws Error when the bytes are none */
export function copyCid(bytes: Uint8Array): CID {
  checkLength(bytes);
  return CID.decode(bytes.slice());
}

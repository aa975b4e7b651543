/** Bodies for uploads. They are made while they are sent, and differ for each seed. */
import { hash } from "node:crypto";
import { closeSync, openSync, readSync, statSync } from "node:fs";
import { encode as encodeCbor } from "@ipld/dag-cbor";
import { CID } from "multiformats/cid";
import { create } from "multiformats/hashes/digest";
import { varintLength, writeVarint } from "#node/formats/protobuf/varint.ts";
import { keystream } from "#test/support/content.ts";
import type { Upload } from "./client.ts";

const boundary = "----------------------------bench4096";
const type = `multipart/form-data; boundary=${boundary}`;
const end = Buffer.from(`--${boundary}--\r\n`);
const none = Buffer.alloc(0);
const newline = Buffer.from("\r\n");

const raw = 0x55;
const dagCbor = 0x71;
const sha256 = 0x12;
const blockSize = 256 * 1024;
/** Bytes of blocks that are sent together. */
const SENT_BYTES = 64 * 1024;

/** Makes a body with one file. */
export function file(size: number, seed: number): Upload {
  const before = header("file");
  return {
    type,
    length: before.length + size + newline.length + end.length,
    *pieces() {
      yield before;
      yield* keystream(size, seed);
      yield newline;
      yield end;
    },
  };
}

/** Names whose order is that of a walk through a folder. */
export const fileName = (at: number): string => `f${String(at).padStart(5, "0")}`;

/**
 * Makes a body with files of `size` bytes each: in a directory of that name, or without a
 * directory.
 */
export function files(count: number, size: number, seed: number, folder = ""): Upload {
  const above = folder === "" ? none : header(folder, "application/x-directory", "\r\n");
  const headerOf = (at: number) => header(folder === "" ? fileName(at) : `${folder}%2F${fileName(at)}`);
  let length = above.length + count * (size + newline.length) + end.length;
  // The headers are not stored, because there may be a million of them.
  for (let at = 0; at < count; at += 1) length += headerOf(at).length;
  return {
    type,
    length,
    *pieces() {
      yield above;
      // Small pieces are sent together, as clients do.
      let pending: Uint8Array[] = [];
      const contents = cut(keystream(count * size, seed), size);
      for (let at = 0; at < count; at += 1) {
        pending.push(headerOf(at), contents.next().value ?? none, newline);
        if (at % 16 !== 15) continue;
        yield Buffer.concat(pending);
        pending = [];
      }
      yield Buffer.concat([...pending, end]);
    },
  };
}

/**
 * Makes an archive with `size` bytes in raw blocks, which are all links of its root. `blockBytes`
 * has to divide 64 KiB if it is smaller.
 */
export function archive(size: number, seed: number, blockBytes = blockSize): Upload {
  const before = header("archive");
  const leaves = Array.from(pieces(size, seed, blockBytes), (bytes) => sectionHead(blockId(raw, bytes), bytes.length));
  const root = encodeCbor(leaves.map(({ cid }) => cid));
  const rootHead = sectionHead(blockId(dagCbor, root), root.length);
  const start = encodeCbor({ roots: [rootHead.cid], version: 1 });
  const front = Buffer.concat([before, varint(start.length), start, rootHead.bytes, root]);
  return {
    type,
    length: leaves.reduce((sum, { bytes }) => sum + bytes.length, front.length + size + newline.length + end.length),
    *pieces() {
      yield front;
      let at = 0;
      // Small pieces are sent together, as clients do.
      let pending: Uint8Array[] = [];
      for (const bytes of pieces(size, seed, blockBytes)) {
        pending.push((leaves[at] as Section).bytes, bytes);
        at += 1;
        if (at % Math.ceil(SENT_BYTES / blockBytes) !== 0) continue;
        if (bytes.length < SENT_BYTES) yield Buffer.concat(pending);
        else yield* pending;
        pending = [];
      }
      yield Buffer.concat([...pending, newline, end]);
    },
  };
}

/** Makes a body from an archive in a file. */
export function stored(path: string): Upload {
  const before = header("archive");
  return {
    type,
    length: before.length + statSync(path).size + newline.length + end.length,
    *pieces() {
      yield before;
      const file = openSync(path, "r");
      try {
        for (;;) {
          const piece = Buffer.allocUnsafe(SENT_BYTES);
          const length = readSync(file, piece);
          if (length === 0) break;
          yield piece.subarray(0, length);
        }
      } finally {
        closeSync(file);
      }
      yield Buffer.concat([newline, end]);
    },
  };
}

/** The bytes in front of a block. */
interface Section {
  readonly cid: CID;
  readonly bytes: Uint8Array;
}

const sectionHead = (cid: CID, length: number): Section => ({
  cid,
  bytes: Buffer.concat([varint(cid.bytes.length + length), cid.bytes]),
});

const blockId = (codec: number, bytes: Uint8Array): CID =>
  CID.createV1(codec, create(sha256, hash("sha256", bytes, "buffer")));

function varint(value: number): Uint8Array {
  const bytes = new Uint8Array(varintLength(value));
  writeVarint(bytes, 0, value);
  return bytes;
}

/** Yields content in blocks. */
function* pieces(size: number, seed: number, blockBytes: number): Generator<Buffer, void, undefined> {
  let pending: Buffer[] = [];
  for (const piece of keystream(size, seed)) {
    if (blockBytes < piece.length) {
      for (let at = 0; at < piece.length; at += blockBytes) yield piece.subarray(at, at + blockBytes);
      continue;
    }
    pending.push(piece);
    if (pending.reduce((sum, { length }) => sum + length, 0) < blockBytes) continue;
    yield Buffer.concat(pending);
    pending = [];
  }
  if (pending.length > 0) yield Buffer.concat(pending);
}

/** Yields the same bytes in pieces of one size. */
function* cut(source: Iterable<Buffer>, size: number): Generator<Buffer, void, undefined> {
  let rest: Buffer = none;
  for (const piece of source) {
    const joined = rest.length === 0 ? piece : Buffer.concat([rest, piece]);
    let at = 0;
    for (; at + size <= joined.length; at += size) yield joined.subarray(at, at + size);
    rest = joined.subarray(at);
  }
}

const header = (name: string, kind = "application/octet-stream", content = "") =>
  Buffer.from(
    `--${boundary}\r\nContent-Disposition: form-data; name="file"; filename="${name}"\r\nContent-Type: ${kind}\r\n\r\n${content}`,
  );

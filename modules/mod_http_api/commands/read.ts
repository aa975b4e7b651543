/** Reading files and trees back. */
import { pipeline } from "node:stream/promises";
import { createGzip } from "node:zlib";
import { inSession, type ReadBlock } from "../../mod_node/content/dag/reader.ts";
import { parsePath } from "../../mod_node/content/resolver/path.ts";
import { fileSize, isDirectory, type UnixfsNode } from "../../mod_node/content/unixfs/node.ts";
import { bulkReader, openFile } from "../../mod_node/content/unixfs/open.ts";
import { readFile } from "../../mod_node/content/unixfs/read.ts";
import { exportTar } from "../../mod_node/content/unixfs/tar.ts";
import { cumulativeSize } from "../../mod_node/formats/dag_pb/dag_pb.ts";
import type { BufferPool } from "../../mod_node/storage/blockstore/buffer_pool.ts";
import { failure, NodeError } from "../../mod_node/util/errors.ts";
import { type AnyCall, bytes, type Commands, defineCommand, raw } from "../rpc/command.ts";

type Bytes = AsyncGenerator<Uint8Array, void, undefined>;

/** What a path leads to, as the root of a file, directory or symlink. */
async function open(path: string, call: AnyCall, read = call.lowLevel.reader(inSession(call))): Promise<UnixfsNode> {
  const { cid } = await call.lowLevel.resolve(path, inSession(call));
  return openFile(cid, read);
}

/** Reads children, which are fetched many at a time. */
const reader = (call: AnyCall) => bulkReader(call.lowLevel.reader(inSession(call)));

/** Reads what is given back when it is sent. */
interface Lending {
  readonly buffers: BufferPool;
  readonly read: ReadBlock;
}

function lending({ lowLevel: node, signal, offline }: AnyCall): Lending {
  const { buffers } = node.blocks;
  return { buffers, read: node.reader(inSession({ signal, offline, buffers })) };
}

interface Part {
  readonly file: UnixfsNode;
  readonly offset: number;
  readonly length: number;
}

/**
 * The files as one long stream, cut to the range. A file that ends before the offset is passed over; one that ends
 * right there is not.
 */
async function partsOf(
  paths: readonly string[],
  { offset, length }: Pick<Part, "offset" | "length">,
  call: AnyCall,
  read: ReadBlock,
): Promise<Part[]> {
  const parts: Part[] = [];
  let skip = offset;
  let left = length;
  for (const path of paths) {
    const file = await open(path, call, read);
    if (isDirectory(file)) throw failure("IS_DIRECTORY");
    const size = fileSize(file);
    if (skip > size) {
      skip -= size;
      continue;
    }
    const taken = Math.min(size - skip, left);
    parts.push({ file, offset: skip, length: taken });
    skip = 0;
    left -= taken;
    if (left === 0) break;
  }
  return parts;
}

async function* contents(parts: readonly Part[], { read, buffers }: Lending): Bytes {
  const readMany = bulkReader(read);
  for (const { file, offset, length } of parts) yield* readFile(file, readMany, { offset, length, buffers });
}

/** The same bytes; the first of them are there when it resolves. @throws when they cannot be had */
async function begun(source: Bytes): Promise<Bytes> {
  const first = await source.next();
  return (async function* () {
    if (first.done === true) return;
    yield first.value;
    yield* source;
  })();
}

async function* gzip(source: Bytes, level: number | undefined): Bytes {
  const packed = createGzip({ level });
  // A failure of the source is one of what is read here.
  pipeline(source, packed).catch(() => {});
  yield* packed;
}

/** The level, as zlib counts; undefined: its own choice. */
function gzipLevel(level: number | undefined): number | undefined {
  if (level !== undefined && (level < 1 || level > 9)) throw new NodeError("compression level must be between 1 and 9");
  return level;
}

export const commands = {
  cat: defineCommand({
    help: "Gives the contents of files.",
    readOnly: true,
    arguments: [{ name: "ipfs-path", required: true, variadic: true, stdin: "lines", help: "The files." }],
    options: {
      offset: { type: "int64", aliases: ["o"], help: "Bytes to pass over." },
      length: { type: "int64", aliases: ["l"], help: "Bytes to give at most." },
    },
    returns: raw,
    async run(call) {
      const { offset = 0, length = Number.POSITIVE_INFINITY } = call.options;
      if (offset < 0) throw new NodeError("cannot specify negative offset");
      if (length < 0) throw new NodeError("cannot specify negative length");
      if (length === 0) return bytes(new Uint8Array(), { length: 0 });
      const lent = lending(call);
      const parts = await partsOf(call.arguments["ipfs-path"], { offset, length }, call, lent.read);
      const source = contents(parts, lent);
      const total = parts.reduce((sum, part) => sum + part.length, 0);
      // The place in the middle of a file is looked for before the answer begins, as in the reference.
      return bytes(offset > 0 ? await begun(source) : source, {
        length: total,
        release: (piece) => lent.buffers.release(piece),
      });
    },
  }),
  get: defineCommand({
    help: "Gives a file or a tree as an archive.",
    readOnly: true,
    arguments: [{ name: "ipfs-path", required: true, stdin: "first", help: "The file or directory." }],
    options: {
      output: { type: "string", aliases: ["o"], help: "Where to write it; of no effect on the answer." },
      archive: { type: "bool", aliases: ["a"], help: "Pack it as a tar archive, compressed or not." },
      compress: { type: "bool", aliases: ["C"], help: "Compress with gzip; a single file is not packed then." },
      "compression-level": { type: "int", aliases: ["l"], help: "From 1, quick, to 9, small." },
    },
    returns: raw,
    async run(call) {
      const { archive, compress = false, "compression-level": given } = call.options;
      const level = compress ? gzipLevel(given) : undefined;
      const path = call.arguments["ipfs-path"];
      const root = await open(path, call);
      call.announce(isDirectory(root) ? cumulativeSize(root) : fileSize(root));
      const packed = archive === true || !compress;
      if (!packed && isDirectory(root)) throw new NodeError("file is not regular");
      const name = parsePath(path).text.split("/").at(-1) as string;
      const source = packed
        ? exportTar(root, name, call.lowLevel.reader(inSession(call)))
        : readFile(root, reader(call));
      return bytes(compress ? gzip(source, level) : source);
    },
  }),
} satisfies Commands;

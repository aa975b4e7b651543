/** Commands on single blocks. */
import { type BlockPutOptions, failure, type WriteCid } from "modhost/node";
import {
  type AnyCall,
  bytes,
  type Commands,
  defineGroup,
  type Option,
  type Options,
  raw,
  readCommand,
  stream,
  value,
  writeCommand,
} from "../rpc/command.ts";
import { fields, type ValueOf } from "../rpc/shape.ts";
import type { FileTree } from "../rpc/uploads.ts";
import { blockStat } from "./shapes.ts";

/** The name of the block argument, which depends on the level; error messages contain it. */
type BlockName = "key" | "hash" | "cid";

const one = (name: BlockName) =>
  [{ name, path: true, required: true, stdin: "first", help: "The block, by CID or path." }] as const;

async function* tapped(body: AsyncIterable<Uint8Array>, see: (piece: Uint8Array) => void): AsyncGenerator<Uint8Array> {
  for await (const piece of body) {
    see(piece);
    yield piece;
  }
}

const putOptions = {
  mhlen: { type: "int", default: -1, help: "Length of the digest in bytes; -1 for its full length." },
  pin: { type: "bool", default: false, help: "Pin the blocks recursively." },
} as const satisfies Options;

const bigBlocks = {
  type: "bool",
  help: "Accept blocks that are too big to exchange with peers.",
} as const satisfies Option;

const putDeclaration = {
  help: "Stores bytes as a block.",
  file: { name: "data", required: true, many: true, help: "The bytes: each file is a block." },
  returns: stream(blockStat),
  text: ({ Key }: ValueOf<typeof blockStat>) => `${Key}\n`,
} as const;

type PutCall = Pick<AnyCall, "node" | "signal" | "offline">;

async function* put(
  { node, signal, offline }: PutCall,
  files: ReturnType<FileTree["plain"]>,
  options: Omit<BlockPutOptions, "timeout">,
  write: WriteCid = String,
): AsyncGenerator<ValueOf<typeof blockStat>> {
  for await (const { passing } of files) {
    let size = 0;
    const counted = tapped(passing, ({ length }) => {
      size += length;
    });
    const key = await node.block.put(counted, { ...options, signal, offline });
    yield { Key: write(key), Size: size };
  }
}

const getCommand = (name: BlockName) =>
  readCommand({
    help: "Returns the bytes of a block.",
    readOnly: true,
    arguments: one(name),
    returns: raw,
    async run({ node, arguments: given, signal, offline }) {
      const { buffers } = node.lowLevel.blocks;
      const block = await node.block.get(given[name], { signal, offline, buffers });
      return bytes(block, { release: (piece) => buffers.release(piece) });
    },
  });

/** @param writeOf returns the function by which the call writes the CID */
const statCommand = (name: BlockName, writeOf: (call: Pick<AnyCall, "cidText">) => WriteCid) =>
  readCommand({
    help: "Shows the size of a block.",
    readOnly: true,
    arguments: one(name),
    returns: value(blockStat),
    async run(call) {
      const { node, signal, offline } = call;
      const write = writeOf(call);
      const { cid, size } = await node.block.stat(call.arguments[name], { signal, offline });
      return { Key: write(cid), Size: size };
    },
    text: ({ Key, Size }) => `Key: ${Key}\nSize: ${Size}\n`,
  });

/** @param writeOf returns the function by which the call writes CIDs */
const removeCommand = (name: BlockName, writeOf: (call: Pick<AnyCall, "cidText">) => WriteCid) =>
  writeCommand({
    help: "Removes blocks that are not pinned.",
    arguments: [{ name, path: true, required: true, variadic: true, help: "The blocks, by CID or path." }],
    options: {
      force: { type: "bool", aliases: ["f"], help: "Ignore blocks that do not exist." },
      quiet: { type: "bool", aliases: ["q"], help: "Report errors only." },
    },
    returns: stream(fields("RemovedBlock", { "Hash?": "string", "Error?": "string" })),
    async *run(call) {
      const { node, options, signal, offline, wording } = call;
      const write = writeOf(call);
      for await (const { cid, error } of node.block.rm(call.arguments[name], { ...options, signal, offline })) {
        yield error === undefined ? { Hash: write(cid) } : { Hash: write(cid), Error: wording(error) };
      }
    },
    text: ({ Hash, Error: fault }) => (fault === undefined ? `removed ${Hash}\n` : `cannot remove ${Hash}: ${fault}\n`),
  });

const refusal = "expected a file";

export const commands = {
  block: defineGroup({ help: "Work with single blocks." }),
  "block/get": getCommand("key"),
  "block/put": writeCommand({
    ...putDeclaration,
    options: {
      format: {
        type: "string",
        aliases: ["f"],
        hiddenAliases: ["cid-codec"],
        help: "Codec of the CID by name, or `v0`; `v0` by default where possible.",
      },
      mhtype: { type: "string", default: "sha2-256", help: "Hash function." },
      ...putOptions,
      "allow-big-block": { ...bigBlocks, since: "0.43" },
    },
    run: (call) => put(call, call.files.plain(refusal), call.options),
  }),
  "block/rm": removeCommand("hash", () => String),
  "block/stat": statCommand("key", () => String),
} satisfies Commands;

export const kubo043 = {
  "block/get": getCommand("cid"),
  "block/put": writeCommand({
    ...putDeclaration,
    options: {
      "cid-codec": { type: "string", default: "raw", unset: [""], help: "Codec of the CID, by its name or number." },
      format: {
        type: "string",
        aliases: ["f"],
        deprecated: true,
        unset: [""],
        help: "Codec of the CID as older versions name it, or `v0`; use `cid-codec` instead.",
      },
      mhtype: { type: "string", unset: [""], help: "Hash function; sha2-256 by default." },
      ...putOptions,
      "allow-big-block": bigBlocks,
    },
    run(call) {
      const { format, "cid-codec": cidCodec, "allow-big-block": big = false, ...options } = call.options;
      if (format !== undefined && cidCodec !== "raw") {
        throw failure("OPTION_CONFLICT", {
          reason: 'unable to use "format" (deprecated) and a custom "cid-codec" at the same time',
        });
      }
      const { maxInline } = call.level;
      const maxBlock = big ? undefined : call.level.maxBlock;
      const files = call.files.plain(refusal, { orNone: true });
      const { importDefaults } = call.level;
      return put(call, files, { ...options, format, cidCodec, maxBlock, maxInline, importDefaults }, call.cidText());
    },
  }),
  "block/rm": removeCommand("cid", (call) => call.cidText()),
  "block/stat": statCommand("cid", (call) => call.cidText()),
} satisfies Commands;

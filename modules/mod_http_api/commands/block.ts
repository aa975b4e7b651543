/** Single blocks. */
import { type BlockPutOptions, NodeError } from "modhost/node";
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
import { blockStat } from "./shapes.ts";

const key = [{ name: "key", path: true, required: true, stdin: "first", help: "The block, by CID or path." }] as const;

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

const bigBlocks = { type: "bool", help: "Take blocks that peers do not exchange." } as const satisfies Option;

const putting = {
  help: "Stores bytes as a block.",
  file: { name: "data", required: true, many: true, help: "The bytes: each file is a block." },
  returns: stream(blockStat),
  text: ({ Key }: ValueOf<typeof blockStat>) => `${Key}\n`,
} as const;

async function* put(
  { node, files, signal, offline }: Pick<AnyCall, "node" | "files" | "signal" | "offline">,
  options: Omit<BlockPutOptions, "timeout">,
): AsyncGenerator<ValueOf<typeof blockStat>> {
  for await (const { body } of files.plain("expected a file")) {
    let size = 0;
    const counted = tapped(body, ({ length }) => {
      size += length;
    });
    const key = await node.block.put(counted, { ...options, signal, offline, transfer: true });
    yield { Key: String(key), Size: size };
  }
}

export const commands = {
  block: defineGroup({ help: "Work with single blocks." }),
  "block/get": readCommand({
    help: "Returns the bytes of a block.",
    readOnly: true,
    arguments: key,
    returns: raw,
    async run({ node, arguments: { key }, signal, offline }) {
      const { buffers } = node.lowLevel.blocks;
      const block = await node.block.get(key, { signal, offline, buffers });
      return bytes(block, { release: (piece) => buffers.release(piece) });
    },
  }),
  "block/put": writeCommand({
    ...putting,
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
    run: (call) => put(call, call.options),
  }),
  "block/rm": writeCommand({
    help: "Removes blocks that are not pinned.",
    arguments: [{ name: "hash", path: true, required: true, variadic: true, help: "The blocks, by CID or path." }],
    options: {
      force: { type: "bool", aliases: ["f"], help: "Ignore blocks that do not exist." },
      quiet: { type: "bool", aliases: ["q"], help: "Report errors only." },
    },
    returns: stream(fields("RemovedBlock", { "Hash?": "string", "Error?": "string" })),
    async *run({ node, arguments: { hash }, options: { force, quiet }, signal, offline }) {
      for await (const { cid, error } of node.block.rm(hash, { force, quiet, signal, offline })) {
        yield error === undefined ? { Hash: String(cid) } : { Hash: String(cid), Error: error.message };
      }
    },
    text: ({ Hash, Error: fault }) => (fault === undefined ? `removed ${Hash}\n` : `cannot remove ${Hash}: ${fault}\n`),
  }),
  "block/stat": readCommand({
    help: "Shows the size of a block.",
    readOnly: true,
    arguments: key,
    returns: value(blockStat),
    async run({ node, arguments: { key }, signal, offline }) {
      const { cid, size } = await node.block.stat(key, { signal, offline });
      return { Key: String(cid), Size: size };
    },
    text: ({ Key, Size }) => `Key: ${Key}\nSize: ${Size}\n`,
  }),
} satisfies Commands;

/** Those of Kubo 0.43. */
export const today = {
  "block/put": writeCommand({
    ...putting,
    options: {
      "cid-codec": { type: "string", default: "raw", help: "Codec of the CID, by its name or number." },
      format: {
        type: "string",
        aliases: ["f"],
        deprecated: true,
        help: "Codec of the CID as older versions name it, or `v0`; use `cid-codec` instead.",
      },
      mhtype: { type: "string", help: "Hash function; sha2-256 by default." },
      ...putOptions,
      "allow-big-block": bigBlocks,
    },
    run(call) {
      const { format, "cid-codec": cidCodec, "allow-big-block": big = false, ...options } = call.options;
      if (format !== undefined && cidCodec !== "raw") {
        throw new NodeError('unable to use "format" (deprecated) and a custom "cid-codec" at the same time');
      }
      return put(call, { ...options, format, cidCodec, maxBlock: big ? undefined : call.level.maxBlock });
    },
  }),
} satisfies Commands;

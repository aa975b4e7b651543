/** Single blocks. */

import { putBlocks } from "../../mod_node/content/adder/put_blocks.ts";
import { removeBlocks } from "../../mod_node/content/pins/remove_blocks.ts";
import { blockFormat, makeBlock, readBlockBody } from "../../mod_node/storage/blockstore/make_block.ts";
import { bytes, type Commands, defineCommand, defineGroup, raw, stream, value } from "../rpc/command.ts";
import { fields } from "../rpc/shape.ts";
import { blockStat } from "./shapes.ts";

const key = [{ name: "key", required: true, stdin: "first", help: "The block, by CID or path." }] as const;

/** Blocks that are removed under one lock, after one look at the pins. */
const removedTogether = 256;

export const commands = {
  block: defineGroup({ help: "Handle single blocks." }),
  "block/get": defineCommand({
    help: "Gives the bytes of a block.",
    readOnly: true,
    arguments: key,
    returns: raw,
    async run(call) {
      const { cid } = await call.node.resolve(call.arguments.key, call);
      const { node, signal, offline } = call;
      const { buffers } = node.blocks;
      const block = await node.blocks.get(cid, { signal, offline, buffers });
      return bytes(block, { release: (piece) => buffers.release(piece) });
    },
  }),
  "block/put": defineCommand({
    help: "Stores bytes as a block.",
    file: { name: "data", required: true, many: true, help: "The bytes: each file is a block." },
    options: {
      format: {
        type: "string",
        aliases: ["f"],
        hiddenAliases: ["cid-codec"],
        help: "Codec of the CID by name, or `v0`; by default `v0` where that can be.",
      },
      mhtype: { type: "string", default: "sha2-256", help: "Hash function." },
      mhlen: { type: "int", default: -1, help: "Bytes of the digest; -1: all." },
      pin: { type: "bool", default: false, help: "Pin the blocks recursively." },
    },
    returns: stream(blockStat),
    async *run({ node, files, options, signal }) {
      const form = blockFormat(options.format ?? "", options.mhtype, options.mhlen);
      const { buffers } = node.blocks;
      for await (const { body } of files.plain("expected a file")) {
        const bytes = await readBlockBody(body, buffers);
        const { cid } = await makeBlock(bytes, form);
        await putBlocks(node, [{ cid, bytes, release: () => buffers.release(bytes) }], { pin: options.pin, signal });
        yield { Key: cid.toString(), Size: bytes.length };
      }
    },
    text: ({ Key }) => `${Key}\n`,
  }),
  "block/rm": defineCommand({
    help: "Removes blocks that nothing pins.",
    arguments: [{ name: "hash", required: true, variadic: true, help: "The blocks, by CID or path." }],
    options: {
      force: { type: "bool", aliases: ["f"], help: "Do not mind blocks that are not here." },
      quiet: { type: "bool", aliases: ["q"], help: "Tell failures only." },
    },
    returns: stream(fields("RemovedBlock", { "Hash?": "string", "Error?": "string" })),
    async *run(call) {
      const { node, signal, options } = call;
      const cids = [];
      for (const path of call.arguments.hash) cids.push((await node.resolve(path, call)).cid);
      while (cids.length > 0) {
        const release = await node.lock.acquireExclusive(signal);
        const some = cids.splice(0, removedTogether);
        const ignoreMissing = options.force === true;
        const results = await removeBlocks(node.blocks, node.pins, some, { ignoreMissing, signal }).finally(release);
        for (const { cid, fault } of results) {
          if (fault !== undefined) yield { Hash: cid.toString(), Error: fault };
          else if (options.quiet !== true) yield { Hash: cid.toString() };
        }
      }
    },
    text: ({ Hash, Error: fault }) => (fault === undefined ? `removed ${Hash}\n` : `cannot remove ${Hash}: ${fault}\n`),
  }),
  "block/stat": defineCommand({
    help: "Tells the size of a block.",
    readOnly: true,
    arguments: key,
    returns: value(blockStat),
    async run(call) {
      const { cid } = await call.node.resolve(call.arguments.key, call);
      return { Key: cid.toString(), Size: (await call.node.blocks.get(cid, call)).length };
    },
    text: ({ Key, Size }) => `Key: ${Key}\nSize: ${Size}\n`,
  }),
} satisfies Commands;

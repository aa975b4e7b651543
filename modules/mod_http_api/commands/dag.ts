/** Nodes of any codec. */
import { cidWriterFor, JsonText } from "modhost/node";
import { bytes, type Commands, defineGroup, raw, readCommand, stream, value, writeCommand } from "../rpc/command.ts";
import { fields } from "../rpc/shape.ts";
import type { FileEntry } from "../rpc/uploads.ts";

const ref = [{ name: "ref", required: true, stdin: "first", help: "The node: a CID, or a path into it." }] as const;
const root = [{ name: "root", required: true, stdin: "first", help: "CID of the root." }] as const;

async function* bodies(files: AsyncIterable<FileEntry>, of: "body" | "passing") {
  for await (const file of files) yield file[of];
}

export const commands = {
  dag: defineGroup({ help: "Work with nodes of any codec." }),
  "dag/export": readCommand({
    help: "Streams a DAG as a CAR file.",
    readOnly: true,
    arguments: root,
    options: { progress: { type: "bool", aliases: ["p"], help: "Show progress; has no effect on the response." } },
    returns: raw,
    async run({ node, arguments: { root }, signal, offline }) {
      const archive = node.dag.export(root, { signal, offline });
      await archive.opened;
      return bytes(archive, { release: (piece) => archive.release(piece) });
    },
  }),
  "dag/get": readCommand({
    help: "Returns a node as JSON.",
    readOnly: true,
    arguments: ref,
    options: {
      "output-codec": {
        type: "string",
        since: "0.43",
        help: "Codec in which the node is returned, at the level 0.43.",
      },
    },
    returns: value("any"),
    async run({ node, arguments: { ref }, signal, offline }) {
      return new JsonText(await node.dag.json(ref, { signal, offline }));
    },
  }),
  "dag/import": writeCommand({
    help: "Stores the blocks of CAR files, and pins their roots.",
    options: {
      silent: { type: "bool", help: "Print nothing." },
      "pin-roots": { type: "bool", default: true, help: "Pin the roots that the CAR headers name." },
    },
    file: { name: "path", required: true, many: true, help: "The CAR files." },
    returns: stream(fields("CarImportOutput", { Root: fields("RootMeta", { Cid: "link", PinErrorMsg: "string" }) })),
    async *run({ node, files, options, signal }) {
      const archives = bodies(files.plain("expected a file handle"), "passing");
      for await (const { root } of node.dag.import(archives, { pinRoots: options["pin-roots"], signal })) {
        yield { Root: { Cid: root.cid, PinErrorMsg: root.pinErrorMsg } };
      }
    },
    text({ Root: { Cid, PinErrorMsg } }, call) {
      if (call.options.silent === true) return "";
      const outcome = PinErrorMsg === "" ? "success" : `FAILED: ${PinErrorMsg}`;
      return `Pinned root\t${call.cidText("kept")(Cid)}\t${outcome}\n`;
    },
  }),
  "dag/put": writeCommand({
    help: "Stores nodes.",
    options: {
      format: {
        type: "string",
        aliases: ["f"],
        hiddenAliases: ["store-codec"],
        default: "cbor",
        help: "Codec in which the nodes are stored: `cbor`, `protobuf`, `raw`, or `dag-json` if the input is `dag-json`.",
      },
      "input-enc": {
        type: "string",
        hiddenAliases: ["input-codec"],
        default: "json",
        help: "Encoding of the input: `json`, `raw`, `cbor`, `protobuf` or `dag-json`.",
      },
      pin: { type: "bool", help: "Pin the nodes." },
      hash: { type: "string", default: "", help: "Hash function to use." },
    },
    file: { name: "object data", required: true, many: true, help: "The nodes, one file each." },
    returns: stream(fields("OutputObject", { Cid: "link" })),
    async *run({ node, files, options, signal, offline }) {
      const { format: storeCodec, "input-enc": inputCodec, hash: hashAlg, pin } = options;
      const nodes = bodies(files.plain("expected a regular file"), "body");
      const how = { storeCodec, inputCodec, hashAlg, pin, signal, offline };
      for await (const Cid of node.dag.putAll(nodes, how)) yield { Cid };
    },
    text: ({ Cid }, call) => `${call.cidText("kept")(Cid)}\n`,
  }),
  "dag/resolve": readCommand({
    help: "Resolves a path to the CID of a node and the rest of the path within it.",
    readOnly: true,
    arguments: ref,
    returns: value(fields("ResolveOutput", { Cid: "link", RemPath: "string" })),
    async run({ node, arguments: { ref }, signal, offline }) {
      const { cid, remainderPath } = await node.dag.resolve(ref, { signal, offline });
      return { Cid: cid, RemPath: remainderPath };
    },
    text({ Cid, RemPath }, call) {
      const text = cidWriterFor(call.arguments.ref, call.cidForm, "kept")(Cid);
      return RemPath === "" ? text : `${text}/${RemPath}`;
    },
  }),
  "dag/stat": readCommand({
    help: "Counts the distinct blocks of a DAG and their total size.",
    readOnly: true,
    arguments: root,
    options: {
      progress: { type: "bool", aliases: ["p"], default: true, help: "Report progress after each block." },
    },
    returns: stream(fields("DagStat", { Size: "uint64", NumBlocks: "int64" })),
    async *run({ node, arguments: { root }, options: { progress }, signal, offline }) {
      for await (const { size, numBlocks } of node.dag.stat(root, { progress, signal, offline })) {
        yield { Size: size, NumBlocks: numBlocks };
      }
    },
    text: ({ Size, NumBlocks }) => `Size: ${Size}, NumBlocks: ${NumBlocks}\n`,
  }),
} satisfies Commands;

/** Nodes of any codec. */
import { defineGroup, raw, stream, value } from "../command.ts";
import { fields } from "../shape.ts";
import { later } from "./later.ts";

export const commands = later({
  dag: defineGroup({ help: "Work with nodes of any codec." }),
  "dag/export": {
    help: "Streams a node with all below it as a CAR file.",
    readOnly: true,
    arguments: [{ name: "root", required: true, stdin: "first", help: "CID of the root." }],
    options: { progress: { type: "bool", aliases: ["p"], help: "Show progress; of no effect on the answer." } },
    returns: raw,
  },
  "dag/get": {
    help: "Gives a node as JSON.",
    readOnly: true,
    arguments: [{ name: "ref", required: true, stdin: "first", help: "The node: a CID, or a path into it." }],
    returns: value("any"),
  },
  "dag/import": {
    help: "Stores the blocks of CAR files, and pins their roots.",
    options: {
      silent: { type: "bool", help: "Print nothing." },
      "pin-roots": { type: "bool", default: true, help: "Pin the roots that the headers name." },
    },
    file: { name: "path", required: true, many: true, help: "The CAR files." },
    returns: stream(fields("CarImportOutput", { Root: fields("RootMeta", { Cid: "link", PinErrorMsg: "string" }) })),
  },
  "dag/put": {
    help: "Stores nodes.",
    options: {
      format: {
        type: "string",
        aliases: ["f"],
        hiddenAliases: ["store-codec"],
        default: "cbor",
        help: "Codec in which the nodes are stored: `cbor`, `protobuf` or `raw`.",
      },
      "input-enc": {
        type: "string",
        hiddenAliases: ["input-codec"],
        default: "json",
        help: "Form of the input: `json`, `raw`, `cbor` or `protobuf`.",
      },
      pin: { type: "bool", help: "Pin the nodes." },
      hash: { type: "string", default: "", help: "Hash function to use." },
    },
    file: { name: "object data", required: true, many: true, help: "The nodes, a file for each." },
    returns: stream(fields("OutputObject", { Cid: "link" })),
  },
  "dag/resolve": {
    help: "Tells to which node a path leads, and what of the path is left inside of it.",
    readOnly: true,
    arguments: [{ name: "ref", required: true, stdin: "first", help: "The path." }],
    returns: value(fields("ResolveOutput", { Cid: "link", RemPath: "string" })),
  },
  "dag/stat": {
    help: "Counts the blocks of a node with all below it, each once, and their bytes.",
    readOnly: true,
    arguments: [{ name: "root", required: true, stdin: "first", help: "CID of the root." }],
    options: {
      progress: { type: "bool", aliases: ["p"], default: true, help: "Give the figures so far after every block." },
    },
    returns: stream(fields("DagStat", { Size: "uint64", NumBlocks: "int64" })),
  },
});

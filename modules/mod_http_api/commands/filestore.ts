/** Blocks that stand for ranges of files and of URLs. */
import { type Argument, defineGroup, stream, value } from "../command.ts";
import { fields } from "../shape.ts";
import { later } from "./later.ts";
import { blockStat, refItem } from "./shapes.ts";

const listed = stream(
  fields("ListRes", {
    Status: "int32",
    ErrorMsg: "string",
    Key: "link",
    FilePath: "string",
    Offset: "uint64",
    Size: "uint64",
  }),
);

const some: readonly Argument[] = [
  { name: "obj", variadic: true, help: "CIDs of the blocks; by default all. These are checked, too." },
];

export const commands = later({
  filestore: defineGroup({ help: "Look into the blocks whose bytes are kept in files outside.", experimental: true }),
  "filestore/dups": { help: "Lists the blocks that the block store has, too.", returns: stream(refItem) },
  "filestore/ls": {
    help: "Lists blocks and the files they stand in.",
    arguments: some,
    options: { "file-order": { type: "bool", help: "Sort by path of the file." } },
    returns: listed,
  },
  "filestore/verify": {
    help: "Checks blocks against the files they stand in.",
    arguments: some,
    options: { "file-order": { type: "bool", help: "Check in the order of the files." } },
    returns: listed,
  },
  urlstore: defineGroup({ help: "Store what URLs lead to.", experimental: true }),
  "urlstore/add": {
    help: "Adds what a URL leads to without keeping its bytes; they are fetched again when they are read.",
    arguments: [{ name: "url", required: true, help: "The URL." }],
    options: {
      trickle: { type: "bool", aliases: ["t"], help: "Use the trickle layout." },
      pin: { type: "bool", default: true, help: "Pin it." },
    },
    returns: value(blockStat),
  },
});

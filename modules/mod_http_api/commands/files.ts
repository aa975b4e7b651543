/** The mutable namespace. */
import { type Argument, defineGroup, nothing, raw, value } from "../command.ts";
import { fields } from "../shape.ts";
import { type Later, later } from "./later.ts";
import { cidOptions } from "./shapes.ts";

const group = defineGroup({
  help: "Work with files and directories that change, under one root.",
  options: {
    flush: { type: "bool", aliases: ["f"], default: true, help: "Write the change through to the root." },
  },
});

const one = (help: string): readonly Argument[] => [{ name: "path", required: true, help }];
const orRoot = (help: string): readonly Argument[] => [{ name: "path", default: "/", help }];
const fromTo = (source: string): readonly Argument[] => [
  { name: "source", required: true, help: source },
  { name: "dest", required: true, help: "Where to; a directory when it ends in a slash." },
];

const statFormat = "<hash>\nSize: <size>\nCumulativeSize: <cumulsize>\nChildBlocks: <childs>\nType: <type>";

const below: Readonly<Record<string, Omit<Later, "group">>> = {
  chcid: {
    help: "Changes the version or the hash function of a directory's CID, and of what is made in it later.",
    arguments: orRoot("The directory."),
    options: cidOptions,
    returns: nothing,
  },
  cp: {
    help: "Puts a file or tree into the namespace, by path; nothing is copied.",
    arguments: fromTo("What: a path such as `/ipfs/<cid>`, or one of the namespace."),
    returns: nothing,
  },
  flush: {
    help: "Writes all changes below a path through to the root.",
    arguments: orRoot("The path."),
    returns: value(fields("flushRes", { Cid: "string" })),
  },
  ls: {
    help: "Lists a directory.",
    arguments: orRoot("The directory."),
    options: {
      long: { type: "bool", aliases: ["l"], help: "Tell size, type and hash, too." },
      U: { type: "bool", help: "Do not sort: print in the order of the directory." },
    },
    returns: value(
      fields("filesLsOutput", {
        Entries: [fields("NodeListing", { Name: "string", Type: "int", Size: "int64", Hash: "string" })],
      }),
    ),
  },
  mkdir: {
    help: "Makes a directory.",
    arguments: one("The directory to make."),
    options: {
      parents: { type: "bool", aliases: ["p"], help: "Make those above it, too; one that is there is no error." },
      ...cidOptions,
    },
    returns: nothing,
  },
  mv: { help: "Moves a file or directory.", arguments: fromTo("What to move."), returns: nothing },
  read: {
    help: "Gives the bytes of a file.",
    arguments: one("The file."),
    options: {
      offset: { type: "int64", aliases: ["o"], help: "Byte to begin with." },
      count: { type: "int64", aliases: ["n"], help: "Most bytes to give." },
    },
    returns: raw,
  },
  rm: {
    help: "Removes a file, or with `recursive` a directory.",
    arguments: [{ name: "path", required: true, variadic: true, help: "What to remove; only the first is looked at." }],
    options: {
      recursive: { type: "bool", aliases: ["r"], help: "Remove directories with all that is in them." },
      force: { type: "bool", help: "Remove whatever is there; what is missing is no error." },
    },
    returns: nothing,
  },
  stat: {
    help: "Tells what a path is.",
    arguments: one("A path of the namespace, or one such as `/ipfs/<cid>`."),
    options: {
      format: {
        type: "string",
        default: statFormat,
        help: "Format of the text: `<hash>`, `<size>`, `<cumulsize>`, `<type>`, `<childs>` stand for what they name.",
      },
      hash: { type: "bool", help: "Print the hash alone; the same as the format `<hash>`." },
      size: { type: "bool", help: "Print the size alone; the same as the format `<cumulsize>`." },
      "with-local": { type: "bool", help: "Tell how much of it is stored here." },
    },
    returns: value(
      fields("statOutput", {
        Hash: "string",
        Size: "uint64",
        CumulativeSize: "uint64",
        Blocks: "int",
        Type: "string",
        "WithLocality?": "bool",
        "Local?": "bool",
        "SizeLocal?": "uint64",
      }),
    ),
  },
  write: {
    help: "Writes into a file.",
    arguments: one("The file."),
    options: {
      offset: { type: "int64", aliases: ["o"], help: "Byte at which to begin." },
      create: { type: "bool", aliases: ["e"], help: "Make the file when it is not there." },
      parents: { type: "bool", aliases: ["p"], help: "Make the directories above it, too." },
      truncate: { type: "bool", aliases: ["t"], help: "Empty the file first." },
      count: { type: "int64", aliases: ["n"], help: "Most bytes to take." },
      "raw-leaves": { type: "bool", experimental: true, help: "Use raw blocks for new leaves." },
      ...cidOptions,
    },
    file: { name: "data", required: true, help: "The bytes." },
    returns: nothing,
  },
};

export const commands = later({
  files: group,
  ...Object.fromEntries(Object.entries(below).map(([name, declared]) => [`files/${name}`, { ...declared, group }])),
});

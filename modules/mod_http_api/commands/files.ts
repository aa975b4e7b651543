/** The mutable namespace (MFS). */

import { compareNames, type FilesLsEntry, NodeError, sizeText } from "modhost/node";
import type { CID } from "multiformats/cid";
import {
  type AnyCall,
  type Argument,
  bytes,
  type Commands,
  defineGroup,
  Listing,
  type MfsUse,
  nothing,
  raw,
  readCommand,
  value,
  writeCommand,
} from "../rpc/command.ts";
import { fields, nullable, type ValueOf } from "../rpc/shape.ts";
import { cidOptions } from "./shapes.ts";

const group = defineGroup({
  help: "Work with the mutable file namespace.",
  options: {
    flush: { type: "bool", aliases: ["f"], default: true, help: "Flush the change to the root." },
  },
});

const help = "The path in the namespace.";
const path = <U extends MfsUse>(mfs: U) => [{ name: "path", required: true, mfs, help }] as const;
const pathOrRoot = <U extends MfsUse>(mfs: U) => [{ name: "path", default: "/", mfs, help }] as const;
const dest = {
  name: "dest",
  required: true,
  mfs: "into",
  help: "The destination; a directory if it ends in a slash.",
} as const;
const source = <U extends MfsUse>(mfs: U, help: string) =>
  ({ name: "source", required: true, mfs, help }) as const satisfies Argument;

const statFormat = "<hash>\nSize: <size>\nCumulativeSize: <cumulsize>\nChildBlocks: <childs>\nType: <type>";

const statOutput = fields("statOutput", {
  Hash: "string",
  Size: "uint64",
  CumulativeSize: "uint64",
  Blocks: "int",
  Type: "string",
  "WithLocality?": "bool",
  "Local?": "bool",
  "SizeLocal?": "uint64",
});

const lsEntry = fields("NodeListing", { Name: "string", Type: "int", Size: "int64", Hash: "string" });
type LsEntry = ValueOf<typeof lsEntry>;

const types = { file: 0, directory: 1 } as const;

interface CidFlags {
  readonly "cid-version": number | undefined;
  readonly hash: string | undefined;
}

/** The parts of a call that apply to every change. */
const changing = ({
  options,
  signal,
  offline,
}: Pick<AnyCall, "signal" | "offline"> & { options: { flush: boolean } & Partial<CidFlags> }) => ({
  flush: options.flush,
  cidVersion: options["cid-version"],
  hashAlg: options.hash,
  signal,
  offline,
});

interface StatFlags {
  readonly format: string;
  readonly hash: boolean | undefined;
  readonly size: boolean | undefined;
}

/** @throws NodeError if more than one is requested */
function formatOf({ format, hash, size }: StatFlags): string {
  if ([hash === true, size === true, format !== statFormat].filter(Boolean).length > 1) {
    const message = "format was set by multiple options. Only one format option is allowed";
    throw new NodeError(message, { kind: "client" });
  }
  if (hash === true) return "<hash>";
  return size === true ? "<cumulsize>" : format;
}

async function* listed(entries: AsyncIterable<FilesLsEntry>, write: (cid: CID) => string): AsyncGenerator<LsEntry> {
  for await (const { name, type, size, cid } of entries) {
    yield { Name: name, Type: types[type], Size: size, Hash: cid === undefined ? "" : write(cid) };
  }
}

export const commands = {
  files: group,
  "files/chcid": writeCommand({
    group,
    help: "Changes the CID version or hash function of a directory, which also applies to what is created in it later.",
    arguments: pathOrRoot("change"),
    options: cidOptions,
    returns: nothing,
    run: (call) => call.node.files.chcid(call.arguments.path, changing(call)),
  }),
  "files/cp": writeCommand({
    group,
    help: "Adds a file or directory to the namespace; its blocks are not copied.",
    arguments: [source("copy", "What: a path such as `/ipfs/<cid>`, or one of the namespace."), dest],
    returns: nothing,
    run: (call) => call.node.files.cp(call.arguments.source, call.arguments.dest, changing(call)),
  }),
  "files/flush": writeCommand({
    group,
    help: "Flushes all changes below a path to the root.",
    arguments: pathOrRoot("make"),
    returns: value(fields("flushRes", { Cid: "string" })),
    async run({ node, arguments: { path }, signal, offline, cidText }) {
      const write = cidText();
      return { Cid: write(await node.files.flush(path, { signal, offline })) };
    },
    text: ({ Cid }) => `${Cid}\n`,
  }),
  "files/ls": readCommand({
    group,
    help: "Lists a directory.",
    arguments: pathOrRoot("look"),
    options: {
      long: { type: "bool", aliases: ["l"], help: "Also list size, type and hash." },
      U: { type: "bool", help: "Do not sort the entries." },
    },
    returns: value(fields("filesLsOutput", { Entries: nullable([lsEntry]) })),
    async run({ node, arguments: { path }, options: { long = false }, signal, offline, cidText }) {
      const write = cidText();
      const { type, entries } = await node.files.listing(path, { long, signal, offline });
      // Like the reference, write the CIDs of directory entries in their own base, ignoring the requested one.
      return new Listing("Entries", listed(entries, type === "file" ? write : String));
    },
    text({ Entries }, { options: { U, long } }) {
      const entries = Entries ?? [];
      const shown = U === true ? entries : entries.toSorted((one, other) => compareNames(one.Name, other.Name));
      return shown
        .map(({ Name, Type, Hash, Size }) =>
          long === true ? `${Name}${Type === types.directory ? "/" : ""}\t${Hash}\t${Size}\n` : `${Name}\n`,
        )
        .join("");
    },
  }),
  "files/mkdir": writeCommand({
    group,
    help: "Creates a directory.",
    arguments: path("make"),
    options: {
      parents: {
        type: "bool",
        aliases: ["p"],
        help: "Create missing parent directories, and accept a directory that exists already.",
      },
      ...cidOptions,
    },
    returns: nothing,
    run: (call) => call.node.files.mkdir(call.arguments.path, { ...changing(call), parents: call.options.parents }),
  }),
  "files/mv": writeCommand({
    group,
    help: "Moves a file or directory.",
    arguments: [source("change", "What to move."), dest],
    returns: nothing,
    run: (call) => call.node.files.mv(call.arguments.source, call.arguments.dest, changing(call)),
  }),
  "files/read": readCommand({
    group,
    help: "Returns the bytes of a file.",
    arguments: path("look"),
    options: {
      offset: { type: "int64", aliases: ["o"], help: "Offset of the first byte." },
      count: { type: "int64", aliases: ["n"], help: "Maximum number of bytes to return." },
    },
    returns: raw,
    async run({ node, arguments: { path }, options: { offset, count: length }, signal, offline }) {
      const content = node.files.read(path, { offset, length, signal, offline });
      await content.opened;
      return bytes(content);
    },
  }),
  "files/rm": writeCommand({
    group,
    help: "Removes a file, or a directory with `recursive`.",
    arguments: [
      {
        name: "path",
        required: true,
        variadic: true,
        mfs: "change",
        help: "What to remove; further arguments are ignored.",
      },
    ],
    options: {
      recursive: { type: "bool", aliases: ["r"], help: "Remove directories with their contents." },
      force: { type: "bool", help: "Remove directories, too, and ignore paths that do not exist." },
    },
    returns: nothing,
    run(call) {
      const { recursive, force } = call.options;
      return call.node.files.rm(call.arguments.path[0] as string, { ...changing(call), recursive, force });
    },
  }),
  "files/stat": readCommand({
    group,
    help: "Shows information about a file or directory.",
    arguments: [
      { name: "path", required: true, mfs: "look", help: "A path in the namespace, or a path such as `/ipfs/<cid>`." },
    ],
    options: {
      format: {
        type: "string",
        default: statFormat,
        help: "Format of the text, with `<hash>`, `<size>`, `<cumulsize>`, `<type>` and `<childs>`.",
      },
      hash: { type: "bool", help: "Print only the hash; the same as the format `<hash>`." },
      size: { type: "bool", help: "Print only the size; the same as the format `<cumulsize>`." },
      "with-local": { type: "bool", help: "Also show how much of it is stored locally." },
    },
    returns: value(statOutput),
    async run({ node, arguments: { path }, options, signal, offline, cidText }) {
      formatOf(options);
      const write = cidText();
      const withLocal = options["with-local"];
      const { cid, size, cumulativeSize, blocks, type, withLocality, local, sizeLocal } = await node.files.stat(path, {
        withLocal,
        signal,
        offline,
      });
      return {
        Hash: write(cid),
        Size: size,
        CumulativeSize: cumulativeSize,
        Blocks: blocks,
        Type: type,
        ...(withLocality && { WithLocality: true }),
        ...(local && { Local: true }),
        ...(sizeLocal !== undefined && { SizeLocal: sizeLocal }),
      };
    },
    text(stat, { options }) {
      const values: Readonly<Record<string, unknown>> = {
        hash: stat.Hash,
        size: stat.Size,
        cumulsize: stat.CumulativeSize,
        childs: stat.Blocks,
        type: stat.Type,
      };
      const line = formatOf(options).replace(/<(hash|size|cumulsize|childs|type)>/g, (_, name: string) =>
        String(values[name]),
      );
      if (stat.WithLocality !== true) return `${line}\n`;
      const { SizeLocal = 0, CumulativeSize } = stat;
      const [local, all] = [Number(SizeLocal), Number(CumulativeSize)];
      return `${line}\nLocal: ${sizeText(local)} of ${sizeText(all)} (${((100 * local) / all).toFixed(2)}%)\n`;
    },
  }),
  "files/write": writeCommand({
    group,
    help: "Writes into a file.",
    arguments: path("change"),
    options: {
      offset: { type: "int64", aliases: ["o"], help: "Offset of the first byte." },
      create: { type: "bool", aliases: ["e"], help: "Create the file if it does not exist." },
      parents: { type: "bool", aliases: ["p"], help: "Create missing parent directories." },
      truncate: { type: "bool", aliases: ["t"], help: "Truncate the file first." },
      count: { type: "int64", aliases: ["n"], help: "Maximum number of bytes to write." },
      "raw-leaves": { type: "bool", experimental: true, help: "Use raw blocks for new leaves." },
      ...cidOptions,
    },
    file: { name: "data", required: true, help: "The bytes." },
    returns: nothing,
    run(call) {
      const { node, files, options } = call;
      const { offset, count: length, create, parents, truncate, "raw-leaves": rawLeaves } = options;
      const how = { ...changing(call), offset, length, create, parents, truncate, rawLeaves };
      return node.files.write(call.arguments.path, async () => (await files.one()).passing, how);
    },
  }),
} satisfies Commands;

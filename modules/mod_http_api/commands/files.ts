/** `files`: the mutable namespace (MFS). */

import { cidWriter, compareNames, type FilesListing, type FilesLsEntry, goJsonText, type WriteCid } from "modhost/node";
import {
  type AnyCall,
  type Argument,
  bytes,
  type Commands,
  defineGroup,
  Listing,
  type MfsUse,
  nothing,
  type Options,
  raw,
  readCommand,
  value,
  writeCommand,
} from "../rpc/command.ts";
import { fields, nullable, type ValueOf } from "../rpc/shape.ts";
import { cidOptions } from "./shapes.ts";

export const group = defineGroup({
  help: "Work with the mutable file namespace.",
  options: {
    flush: { type: "bool", aliases: ["f"], default: true, help: "Flush the change to the root." },
  },
});

const help = "The path in the namespace.";
export const path = <U extends MfsUse>(mfs: U) => [{ name: "path", required: true, mfs, help }] as const;
const pathOrRoot = <U extends MfsUse>(mfs: U) => [{ name: "path", default: "/", mfs, help }] as const;
const dest = {
  name: "dest",
  required: true,
  mfs: "into",
  help: "The destination; a directory if it ends in a slash.",
} as const;
const source = <U extends MfsUse>(mfs: U, help: string) =>
  ({ name: "source", required: true, path: true, mfs, help }) as const satisfies Argument;

const lsEntry = fields("NodeListing", { Name: "string", Type: "int", Size: "int64", Hash: "string" });
type LsEntry = ValueOf<typeof lsEntry>;

const types = { file: 0, directory: 1 } as const;

interface CidFlags {
  readonly "cid-version": number | undefined;
  readonly hash: string | undefined;
}

/** Returns the parts of a call that apply to every change. */
export const changeOptions = ({
  options,
  level,
  signal,
  offline,
}: Pick<AnyCall, "signal" | "offline" | "level"> & { options: { flush: boolean } & Partial<CidFlags> }) => ({
  flush: options.flush,
  cidVersion: options["cid-version"],
  hashAlg: options.hash,
  sharding: level.sharding,
  limitsUnflushed: level.limitsUnflushed,
  importDefaults: level.importDefaults,
  names: level.names,
  signal,
  offline,
});

/** Lists a directory that may have very many entries. */
class EntryListing extends Listing<FilesLsEntry> {
  readonly #write: WriteCid;

  constructor({ pages, name }: FilesListing, write: WriteCid) {
    super("Entries", pages, name);
    this.#write = write;
  }

  #hashOf = ({ cid }: FilesLsEntry): string => (cid === undefined ? "" : this.#write(cid));

  override whole(entries: readonly FilesLsEntry[]) {
    const shown = entries.map((entry): LsEntry => {
      const { name, type, size } = entry;
      return { Name: name, Type: types[type], Size: size, Hash: this.#hashOf(entry) };
    });
    return { Entries: shown.length === 0 ? null : shown };
  }

  protected override itemJson(entry: FilesLsEntry): string {
    const { name, type, size } = entry;
    const hash = goJsonText(this.#hashOf(entry));
    return `{"Name":${goJsonText(name)},"Type":${types[type]},"Size":${size},"Hash":${hash}}`;
  }
}

export const aboutChcid = {
  group,
  help: "Changes the CID version or hash function of a directory, which also applies to what is created in it later.",
  options: cidOptions,
  returns: nothing,
} as const;

export const aboutRead = {
  group,
  help: "Returns the bytes of a file.",
  arguments: path("look"),
  options: {
    offset: { type: "int64", aliases: ["o"], help: "Offset of the first byte." },
    count: { type: "int64", aliases: ["n"], help: "Maximum number of bytes to return." },
  },
  returns: raw,
} as const;

type ReadCall = Pick<AnyCall, "node" | "signal" | "offline"> & {
  readonly arguments: { readonly path: string };
  readonly options: { readonly offset: number | undefined; readonly count: number | undefined };
};

export async function readAt({ node, arguments: { path }, options, signal, offline }: ReadCall) {
  const { offset, count: length } = options;
  const content = node.files.read(path, { offset, length, signal, offline });
  await content.opened;
  return bytes(content);
}

export const removedPaths = { name: "path", required: true, variadic: true, mfs: "change" } as const;
export const removeOptions = {
  recursive: { type: "bool", aliases: ["r"], help: "Remove directories with their contents." },
  force: { type: "bool", help: "Remove directories, too, and ignore paths that do not exist." },
} as const satisfies Options;

export const commands = {
  files: group,
  "files/chcid": writeCommand({
    ...aboutChcid,
    arguments: pathOrRoot("change"),
    run: (call) => call.node.files.chcid(call.arguments.path, changeOptions(call)),
  }),
  "files/chmod": writeCommand({
    group,
    since: "0.43",
    help: "Sets the permissions of a file or directory.",
    arguments: [{ name: "mode", required: true, help: "Octal digits, such as 0644; 0 for none." }, ...path("change")],
    returns: nothing,
    run: (call) => call.node.files.chmod(call.arguments.path, call.arguments.mode, changeOptions(call)),
  }),
  "files/cp": writeCommand({
    group,
    help: "Adds a file or directory to the namespace; its blocks are not copied.",
    arguments: [source("copy", "The source: a path such as `/ipfs/<cid>`, or a path in the namespace."), dest],
    options: {
      force: { type: "bool", since: "0.43", help: "Replace an existing file." },
      parents: { type: "bool", aliases: ["p"], since: "0.43", help: "Create missing parent directories." },
    },
    returns: nothing,
    run(call) {
      const { force, parents } = call.options;
      const resolvesNames = call.level.filesResolveNames;
      const options = { ...changeOptions(call), force, parents, resolvesNames };
      return call.node.files.cp(call.arguments.source, call.arguments.dest, options);
    },
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
      const listing = await node.files.listing(path, { long, signal, offline });
      // Like go-ipfs, writes the CIDs of directory entries in their own base and ignores the
      // requested one.
      return new EntryListing(listing, listing.type === "file" ? write : cidWriter({}));
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
    run: (call) =>
      call.node.files.mkdir(call.arguments.path, { ...changeOptions(call), parents: call.options.parents }),
  }),
  "files/mv": writeCommand({
    group,
    help: "Moves a file or directory.",
    arguments: [source("change", "What to move."), dest],
    returns: nothing,
    run: (call) => call.node.files.mv(call.arguments.source, call.arguments.dest, changeOptions(call)),
  }),
  "files/read": readCommand({ ...aboutRead, run: readAt }),
  "files/rm": writeCommand({
    group,
    help: "Removes a file, or a directory with `recursive`.",
    arguments: [{ ...removedPaths, help: "The path to remove; further arguments are ignored." }],
    options: removeOptions,
    returns: nothing,
    run(call) {
      const { recursive, force } = call.options;
      return call.node.files.rm(call.arguments.path[0] as string, { ...changeOptions(call), recursive, force });
    },
  }),
  "files/touch": writeCommand({
    group,
    since: "0.43",
    help: "Sets the modification time of a file or directory.",
    arguments: path("change"),
    options: {
      mtime: { type: "int64", help: "Seconds since 1970; 0 or no value means now." },
      "mtime-nsecs": { type: "uint", help: "Nanoseconds of the modification time." },
    },
    returns: nothing,
    run(call) {
      const { mtime, "mtime-nsecs": nanoseconds = 0 } = call.options;
      const carried = Math.floor(nanoseconds / 1e9);
      const time = mtime ? { seconds: mtime + carried, nanoseconds: nanoseconds % 1e9 } : undefined;
      return call.node.files.touch(call.arguments.path, { ...changeOptions(call), mtime: time });
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
      const { node, files, options, level } = call;
      const { joinsLeaf, maxChunk } = level;
      const maxInline = Number.isFinite(level.maxInline) ? level.maxInline : undefined;
      const { offset, count: length, create, parents, truncate, "raw-leaves": rawLeaves } = options;
      const how = {
        ...changeOptions(call),
        offset,
        length,
        create,
        parents,
        truncate,
        rawLeaves,
        joinsLeaf,
        maxChunk,
        maxInline,
      };
      return node.files.write(call.arguments.path, async () => (await files.one()).passing, how);
    },
  }),
} satisfies Commands;

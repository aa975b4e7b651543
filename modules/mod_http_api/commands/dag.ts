/** DAG nodes of any codec. */
import { cidWriterFor, failure, JsonText } from "modhost/node";
import {
  type AnyCall,
  bytes,
  type Commands,
  defineGroup,
  type Options,
  type OptionValues,
  raw,
  readCommand,
  stream,
  value,
  writeCommand,
} from "../rpc/command.ts";
import { fields, type ValueOf } from "../rpc/shape.ts";
import type { FileEntry } from "../rpc/uploads.ts";
import { announceDecision, fastProvide } from "./fast_provide.ts";

export const ref = [
  { name: "ref", path: true, required: true, stdin: "first", help: "The node: a CID, or a path into it." },
] as const;
export const root = [{ name: "root", path: true, required: true, stdin: "first", help: "CID of the root." }] as const;

export async function* bodies(files: AsyncIterable<FileEntry>, of: "body" | "passing") {
  for await (const file of files) yield file[of];
}

/** @param before prefix of the remaining path in the result */
export const resolveCommand = (before: "" | "/") =>
  readCommand({
    help: "Resolves a path to the CID of a node and the rest of the path within it.",
    readOnly: true,
    arguments: ref,
    returns: value(fields("ResolveOutput", { Cid: "link", RemPath: "string" })),
    async run({ node, arguments: { ref }, signal, offline }) {
      const { cid, remainderPath } = await node.dag.resolve(ref, { signal, offline });
      return { Cid: cid, RemPath: remainderPath === "" ? "" : `${before}${remainderPath}` };
    },
    text({ Cid, RemPath }, call) {
      const text = cidWriterFor(call.arguments.ref, call.cidForm, "kept")(Cid);
      return RemPath === "" ? text : `${text}/${RemPath.slice(before.length)}`;
    },
  });

export const importOptions = {
  stats: { type: "bool", since: "0.43", help: "Report how many blocks and bytes were read." },
  "local-only": { type: "bool", since: "0.43", help: "Pin nothing and fetch nothing." },
  ...fastProvide,
} as const satisfies Options;

const carRoot = fields("RootMeta", { Cid: "link", PinErrorMsg: "string" });
const carStats = fields("CarImportStats", { BlockCount: "uint64", BlockBytesCount: "uint64" });
/**
 * Each line has either a root or statistics. Only the level 0.43 declares that the root can be
 * missing.
 */
const carImport = fields("CarImportOutput", { "Root?": carRoot, "Stats?": carStats });
const carRoots = fields("CarImportOutput", { Root: carRoot, "Stats?+": carStats });
type CarImport = ValueOf<typeof carImport>;

export const importDeclaration = {
  file: { name: "path", required: true, many: true, help: "The CAR files." },
  returns: stream(carImport),
  text({ Root, Stats }: CarImport, call: Pick<AnyCall, "options" | "cidText">) {
    if (call.options.silent === true) return "";
    if (Root === undefined) return `Imported ${Stats?.BlockCount} blocks (${Stats?.BlockBytesCount} bytes)\n`;
    const outcome = Root.PinErrorMsg === "" ? "success" : `FAILED: ${Root.PinErrorMsg}`;
    return `Pinned root\t${call.cidText("kept")(Root.Cid)}\t${outcome}\n`;
  },
} as const;

type ImportCall = Pick<AnyCall, "node" | "files" | "level" | "signal" | "offline" | "wording"> & {
  readonly options: OptionValues<typeof importOptions>;
};

export async function* importCars(
  { node, files, options, level, signal, offline, wording }: ImportCall,
  pinRoots: boolean,
  maxBlock?: number,
): AsyncGenerator<CarImport> {
  const archives = bodies(files.plain("expected a file handle", { orNone: true }), "passing");
  const counts = { blocks: 0, bytes: 0 };
  const announce = announceDecision(
    { node, level, options },
    { preset: level.importDefaults, content: { isPinned: pinRoots, isInFiles: false } },
  );
  const limits = { maxBlock, maxInline: level.maxInline };
  const how = { pinRoots, counts, ...limits, rules: level.importing, announce, signal, offline };
  for await (const { root } of node.dag.import(archives, how)) {
    yield { Root: { Cid: root.cid, PinErrorMsg: root.pinError === undefined ? "" : wording(root.pinError) } };
  }
  if (options.stats === true) yield { Stats: { BlockCount: counts.blocks, BlockBytesCount: counts.bytes } };
}

const exportOptions = {
  progress: { type: "bool", aliases: ["p"], help: "Show progress; has no effect on the response." },
  "local-only": { type: "bool", since: "0.43", help: "Omit blocks that are not stored here, and fetch nothing." },
} as const satisfies Options;

type ExportCall = Pick<AnyCall, "node" | "signal" | "offline"> & {
  readonly options: OptionValues<typeof exportOptions>;
};

/** @param paths whether the root may be a path */
export async function exportCar(root: string, paths: boolean, { node, options, signal, offline }: ExportCall) {
  const localOnly = options["local-only"];
  if (localOnly === true && (options as { offline?: boolean }).offline === false) {
    throw failure("OPTION_CONFLICT", {
      reason: "--local-only implies --offline and cannot be combined with --offline=false; please drop one of them",
    });
  }
  const archive = node.dag.export(root, { localOnly, paths, signal, offline });
  await archive.opened;
  return bytes(archive, { release: (piece) => archive.release(piece) });
}

export const exportDeclaration = {
  help: "Streams a DAG as a CAR file.",
  readOnly: true,
  options: exportOptions,
  returns: raw,
} as const;

export const commands = {
  dag: defineGroup({ help: "Work with nodes of any codec." }),
  "dag/export": readCommand({
    ...exportDeclaration,
    arguments: root,
    run: (call) => exportCar(call.arguments.root, false, call),
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
      ...importOptions,
    },
    ...importDeclaration,
    returns: stream(carRoots),
    run: (call) =>
      importCars(call, call.options["local-only"] !== true && call.options["pin-roots"]) as AsyncIterable<never>,
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
  "dag/resolve": resolveCommand(""),
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

/** The `dag` commands of Kubo 0.43. */
import { failure, sizeText } from "modhost/node";
import { bytes, type Commands, raw, readCommand, stream, writeCommand } from "../rpc/command.ts";
import { fields, type ValueOf } from "../rpc/shape.ts";
import {
  bodies,
  exportCar,
  exportDeclaration,
  importCars,
  importDeclaration,
  importOptions,
  ref,
  resolveCommand,
} from "./dag.ts";

const dagStat = fields("DagStat", { Cid: "string", Size: "uint64", NumBlocks: "int64" });
const dagStats = fields("DagStatSummary", {
  "UniqueBlocks?": "int",
  TotalSize: "uint64",
  "SharedSize?": "uint64",
  "Ratio?": "float64",
  DagStats: [dagStat],
});

/** Returns the number with the fewest digits that rounds to the same 32-bit float. */
function asFloat32(number: number): number {
  const wanted = Math.fround(number);
  for (let digits = 1; digits < 10; digits += 1) {
    const short = Number(number.toPrecision(digits));
    if (Math.fround(short) === wanted) return short;
  }
  return wanted;
}

/** Formats a table of the DAGs, then the totals. */
function statText({ UniqueBlocks, TotalSize, SharedSize = 0, Ratio = 0, DagStats }: ValueOf<typeof dagStats>): string {
  if (UniqueBlocks === undefined) return "";
  const width = Math.max(...DagStats.map(({ Cid }) => Cid.length));
  const row = (cid: string, blocks: unknown, size: unknown) =>
    `${cid.padEnd(width)}\t${String(blocks).padEnd(15)}\t${size}\n`;
  const rows = DagStats.map(({ Cid, NumBlocks, Size }) => row(Cid, NumBlocks, Size));
  const sized = (size: number | bigint) => `${size} (${sizeText(Number(size))})`;
  return (
    `\n${row("CID", "Blocks", "Size")}${rows.join("")}\nSummary\nTotal Size: ${sized(TotalSize)}\n` +
    `Unique Blocks: ${UniqueBlocks}\nShared Size: ${sized(SharedSize)}\nRatio: ${Ratio.toFixed(6)}\n\n\n`
  );
}

export const kubo043 = {
  "dag/export": readCommand({
    ...exportDeclaration,
    arguments: [
      { name: "root", path: true, required: true, stdin: "first", help: "The root: a CID, or a path below one." },
    ],
    run: (call) => exportCar(call.arguments.root, true, call),
  }),
  "dag/get": readCommand({
    help: "Returns a node in a codec.",
    readOnly: true,
    arguments: ref,
    options: { "output-codec": { type: "string", default: "dag-json", help: "The codec to write it in." } },
    returns: raw,
    async run({ node, arguments: { ref }, options: { "output-codec": outputCodec }, signal, offline }) {
      return bytes(await node.dag.encode(ref, { outputCodec, signal, offline }));
    },
  }),
  "dag/import": writeCommand({
    help: "Stores the blocks of CAR files, and pins their roots.",
    options: {
      silent: { type: "bool", help: "Print nothing." },
      "pin-roots": {
        type: "bool",
        help: "Pin the roots that the CAR headers name; the default unless local-only is set.",
      },
      "allow-big-block": { type: "bool", help: "Accept blocks that are too big to exchange with peers." },
      ...importOptions,
    },
    ...importDeclaration,
    run(call) {
      const { "pin-roots": pinRoots, "local-only": localOnly = false } = call.options;
      if (localOnly && pinRoots === true) {
        throw failure("OPTION_CONFLICT", {
          reason:
            "--local-only implies --pin-roots=false and cannot be combined with --pin-roots=true; please drop one of them",
        });
      }
      const maxBlock = call.options["allow-big-block"] === true ? undefined : call.level.maxBlock;
      return importCars(call, pinRoots ?? !localOnly, maxBlock);
    },
  }),
  "dag/put": writeCommand({
    help: "Stores nodes.",
    options: {
      "store-codec": { type: "string", default: "dag-cbor", help: "Codec in which the nodes are stored." },
      "input-codec": { type: "string", default: "dag-json", help: "Codec of the input." },
      pin: { type: "bool", help: "Pin the nodes." },
      hash: { type: "string", help: "Hash function to use; `Import.HashFunction`, or sha2-256, by default." },
      "allow-big-block": { type: "bool", help: "Allow blocks that are too big to exchange with peers." },
    },
    file: { name: "object data", required: true, many: true, help: "The nodes, one file each." },
    returns: stream(fields("OutputObject", { Cid: "link" })),
    async *run({ node, files, options, signal, offline, level }) {
      const { "store-codec": storeCodec, "input-codec": inputCodec, hash: hashAlg, pin } = options;
      const nodes = bodies(files.plain("expected a regular file", { orNone: true }), "body");
      const maxBlock = options["allow-big-block"] === true ? undefined : level.maxBlock;
      const limits = { maxBlock, maxInline: level.maxInline };
      const made = { storeCodec, inputCodec, hashAlg, pin, codecs: "multicodec", ...limits } as const;
      const how = { ...made, importDefaults: level.importDefaults, signal, offline };
      for await (const Cid of node.dag.putAll(nodes, how)) yield { Cid };
    },
    text: ({ Cid }, call) => `${call.cidText("kept")(Cid)}\n`,
  }),
  "dag/resolve": resolveCommand("/"),
  "dag/stat": readCommand({
    help: "Counts the distinct blocks of DAGs, their sizes, and the blocks that they share.",
    readOnly: true,
    arguments: [
      { name: "root", path: true, required: true, variadic: true, stdin: "lines", help: "CIDs of the roots." },
    ],
    options: {
      progress: { type: "bool", aliases: ["p"], default: true, help: "Report progress after each block." },
    },
    returns: stream(dagStats),
    async *run({ node, arguments: { root }, options: { progress }, signal, offline, cidText }) {
      const write = cidText();
      for await (const { over, totalSize, ...sum } of node.dag.sum(root, { progress, signal, offline })) {
        const { uniqueBlocks, sharedSize } = sum;
        const ratio = totalSize === 0 ? 0 : asFloat32((totalSize + sharedSize) / totalSize);
        yield {
          ...(over && { UniqueBlocks: uniqueBlocks }),
          TotalSize: totalSize,
          ...(over && sharedSize > 0 && { SharedSize: sharedSize }),
          ...(over && { Ratio: ratio }),
          DagStats: sum.dags.map(({ cid, size, numBlocks }) => ({
            Cid: write(cid),
            Size: size,
            NumBlocks: numBlocks,
          })),
        };
      }
    },
    text: statText,
  }),
} satisfies Commands;

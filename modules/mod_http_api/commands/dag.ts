/** Nodes of any codec. */
import type { CID } from "multiformats/cid";
import { putBlocks } from "../../mod_node/content/adder/put_blocks.ts";
import { exportCar } from "../../mod_node/content/car/export.ts";
import { importCar } from "../../mod_node/content/car/import.ts";
import { nodeMaker } from "../../mod_node/content/dag/put.ts";
import { inSession } from "../../mod_node/content/dag/reader.ts";
import { walk } from "../../mod_node/content/dag/walk.ts";
import { parseCid } from "../../mod_node/formats/cid/text.ts";
import { cidWriterFor } from "../../mod_node/formats/cid/writer.ts";
import { member } from "../../mod_node/formats/dag_cbor/value.ts";
import { nodeJson, valueIn, valueJson } from "../../mod_node/formats/ipld/data_model.ts";
import { linksOf } from "../../mod_node/formats/ipld/links.ts";
import { readBlockBody } from "../../mod_node/storage/blockstore/make_block.ts";
import { mapConcurrent } from "../../mod_node/util/async/map_concurrent.ts";
import { WeightedSemaphore } from "../../mod_node/util/async/weighted_semaphore.ts";
import { failure, failures, NodeError } from "../../mod_node/util/errors.ts";
import { type AnyCall, bytes, type Commands, defineCommand, defineGroup, raw, stream, value } from "../rpc/command.ts";
import { fields } from "../rpc/shape.ts";
import type { FileEntry } from "../rpc/uploads.ts";

const ref = [{ name: "ref", required: true, stdin: "first", help: "The node: a CID, or a path into it." }] as const;
const root = [{ name: "root", required: true, stdin: "first", help: "CID of the root." }] as const;

/** Nodes that are stored at the same time: they share flushes of the disk. */
const storedAtOnce = 16;
/** Bytes of them; a longer one is stored alone. */
const mostHeld = 16 * 1024 * 1024;

/** Contents of the files, as long as they fit in what may be held. @throws NodeError */
async function* contents(files: AsyncIterable<FileEntry>, held: WeightedSemaphore): AsyncGenerator<Uint8Array> {
  for await (const { body } of files) {
    const content = await readBlockBody(body);
    await held.acquire(content.length);
    yield content;
  }
}

/** Why a root cannot be pinned; empty when it is. */
async function pinRoot(cid: CID, { lowLevel: node, signal }: Pick<AnyCall, "lowLevel" | "signal">): Promise<string> {
  try {
    const found = await node.blocks.find(cid);
    if (found === undefined) throw failure("BLOCKSTORE_NOT_FOUND");
    linksOf(cid, found);
    await node.pins.add(cid, "recursive", { signal, offline: true });
    node.announce([cid]);
    return "";
  } catch (error) {
    if (!(error instanceof NodeError)) throw error;
    return error.message;
  }
}

/** What would help with a missing block is told with it. */
async function* hinted(
  archive: AsyncIterable<Uint8Array>,
  { lowLevel: node, offline }: AnyCall,
): AsyncGenerator<Uint8Array> {
  try {
    yield* archive;
  } catch (error) {
    if (!(error instanceof NodeError) || error.code !== "NODE_NOT_FOUND" || (!offline && node.online)) throw error;
    const remedy = offline ? "without the offline flag" : "after attaching to the network";
    throw new NodeError(`${failures.NODE_NOT_FOUND} (currently offline, perhaps retry ${remedy})`);
  }
}

export const commands = {
  dag: defineGroup({ help: "Work with nodes of any codec." }),
  "dag/export": defineCommand({
    help: "Streams a node with all below it as a CAR file.",
    readOnly: true,
    arguments: root,
    options: { progress: { type: "bool", aliases: ["p"], help: "Show progress; of no effect on the answer." } },
    returns: raw,
    run(call) {
      const { lowLevel: node, signal, offline } = call;
      const { buffers } = node.blocks;
      const read = node.reader(inSession({ signal, offline, buffers }));
      return bytes(hinted(exportCar(rootIn(call.arguments.root), read, { signal, buffers }), call), {
        release: (piece) => buffers.release(piece),
      });
    },
  }),
  "dag/get": defineCommand({
    help: "Gives a node as JSON.",
    readOnly: true,
    arguments: ref,
    returns: value("any"),
    async run(call) {
      const { cid, remainder } = await call.lowLevel.resolve(call.arguments.ref, call);
      const block = await call.lowLevel.reader(call)(cid);
      const whole = remainder.length === 0 ? undefined : valueIn(cid, block);
      return whole === undefined ? nodeJson(cid, block) : valueJson(remainder.reduce(member, whole));
    },
  }),
  "dag/import": defineCommand({
    help: "Stores the blocks of CAR files, and pins their roots.",
    options: {
      silent: { type: "bool", help: "Print nothing." },
      "pin-roots": { type: "bool", default: true, help: "Pin the roots that the headers name." },
    },
    file: { name: "path", required: true, many: true, help: "The CAR files." },
    returns: stream(fields("CarImportOutput", { Root: fields("RootMeta", { Cid: "link", PinErrorMsg: "string" }) })),
    async *run(call) {
      const { lowLevel: node, files, options, signal } = call;
      const roots = new Map<string, CID>();
      const unguard = node.pins.guard(() => roots.values());
      try {
        await node.lock.withShared(async () => {
          for await (const { passing } of files.plain("expected a file handle")) {
            for (const cid of await importCar(node.blocks, passing)) roots.set(cid.toString(), cid);
          }
          await node.sync();
        }, signal);
        if (!options["pin-roots"]) return;
        let failed = 0;
        for (const cid of roots.values()) {
          const PinErrorMsg = await pinRoot(cid, call);
          if (PinErrorMsg !== "") failed += 1;
          yield { Root: { Cid: cid, PinErrorMsg } };
        }
        if (failed > 0) throw new NodeError(`unable to pin all roots: ${failed} out of ${roots.size} failed`);
      } finally {
        unguard();
      }
    },
    text({ Root: { Cid, PinErrorMsg } }, call) {
      if (call.options.silent === true) return "";
      const outcome = PinErrorMsg === "" ? "success" : `FAILED: ${PinErrorMsg}`;
      return `Pinned root\t${call.cidText("kept")(Cid)}\t${outcome}\n`;
    },
  }),
  "dag/put": defineCommand({
    help: "Stores nodes.",
    options: {
      format: {
        type: "string",
        aliases: ["f"],
        hiddenAliases: ["store-codec"],
        default: "cbor",
        help: "Codec in which the nodes are stored: `cbor`, `protobuf`, `raw` or, from `dag-json`, `dag-json`.",
      },
      "input-enc": {
        type: "string",
        hiddenAliases: ["input-codec"],
        default: "json",
        help: "Form of the input: `json`, `raw`, `cbor`, `protobuf` or `dag-json`.",
      },
      pin: { type: "bool", help: "Pin the nodes." },
      hash: { type: "string", default: "", help: "Hash function to use." },
    },
    file: { name: "object data", required: true, many: true, help: "The nodes, a file for each." },
    returns: stream(fields("OutputObject", { Cid: "link" })),
    async *run({ lowLevel: node, files, options, signal }) {
      const make = nodeMaker(options["input-enc"], options.format, options.hash);
      const { pin } = options;
      const held = new WeightedSemaphore(mostHeld);
      const given = contents(files.plain("expected a regular file"), held);
      yield* mapConcurrent(given, storedAtOnce, async (content) => {
        try {
          const block = await make(content);
          await putBlocks(node, [block], { pin, signal });
          return { Cid: block.cid };
        } finally {
          held.release(content.length);
        }
      });
    },
    text: ({ Cid }, call) => `${call.cidText("kept")(Cid)}\n`,
  }),
  "dag/resolve": defineCommand({
    help: "Tells to which node a path leads, and what of the path is left inside of it.",
    readOnly: true,
    arguments: ref,
    returns: value(fields("ResolveOutput", { Cid: "link", RemPath: "string" })),
    async run(call) {
      const { cid, remainder } = await call.lowLevel.resolve(call.arguments.ref, call);
      return { Cid: cid, RemPath: remainder.join("/") };
    },
    text({ Cid, RemPath }, call) {
      const text = cidWriterFor(call.arguments.ref, call.cidForm, "kept")(Cid);
      return RemPath === "" ? text : `${text}/${RemPath}`;
    },
  }),
  "dag/stat": defineCommand({
    help: "Counts the blocks of a node with all below it, each once, and their bytes.",
    readOnly: true,
    arguments: root,
    options: {
      progress: { type: "bool", aliases: ["p"], default: true, help: "Give the figures so far after every block." },
    },
    returns: stream(fields("DagStat", { Size: "uint64", NumBlocks: "int64" })),
    async *run(call) {
      const { lowLevel: node, signal, options } = call;
      const { cid, remainder } = await node.resolve(call.arguments.root, call);
      if (remainder.length > 0) {
        throw new NodeError("cannot return size for anything other than a DAG with a root CID");
      }
      const read = node.reader(inSession(call));
      linksOf(cid, await read(cid));
      let Size = 0;
      let NumBlocks = 0;
      try {
        for await (const block of walk(cid, { read, signal, skipLeaves: true })) {
          Size += block.bytes?.length ?? (await node.blocks.size(block.cid)) ?? (await read(block.cid)).length;
          NumBlocks += 1;
          if (options.progress) yield { Size, NumBlocks };
        }
      } catch (error) {
        if (!(error instanceof NodeError)) throw error;
        throw new NodeError(`error traversing DAG: ${error.message}`, { cause: error });
      }
      if (!options.progress) yield { Size, NumBlocks };
    },
    text: ({ Size, NumBlocks }) => `Size: ${Size}, NumBlocks: ${NumBlocks}\n`,
  }),
} satisfies Commands;

function rootIn(text: string): CID {
  try {
    return parseCid(text);
  } catch (error) {
    const reason = "unable to parse root specification (currently only bare CIDs are supported)";
    throw new NodeError(`${reason}: ${(error as Error).message}`, { cause: error });
  }
}

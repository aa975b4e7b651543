/** Nodes of any codec. */
import { CID } from "multiformats/cid";
import { putBlocks } from "../content/adder/put_blocks.ts";
import { exportCar } from "../content/car/export.ts";
import { nodeMaker } from "../content/dag/put.ts";
import { inSession } from "../content/dag/reader.ts";
import { parseCid } from "../formats/cid/text.ts";
import { member } from "../formats/dag_cbor/value.ts";
import { nodeJson, valueIn, valueJson } from "../formats/ipld/data_model.ts";
import { decodeValue, encodeValue } from "../formats/ipld/js_codecs.ts";
import type { LowLevelNode } from "../low_level_node.ts";
import { readBlockBody } from "../storage/blockstore/make_block.ts";
import { mapConcurrent } from "../util/async/map_concurrent.ts";
import { WeightedSemaphore } from "../util/async/weighted_semaphore.ts";
import { failure, NodeError } from "../util/errors.ts";
import { type ByteStream, LazyByteStream } from "./byte_stream.ts";
import type { CarSources } from "./candidates.ts";
import { type CallOptions, type IpfsPath, pathText, reading } from "./common.ts";
import { counted, hinted, imported, rootIn } from "./dag_archive.ts";

export interface DagGetOptions extends CallOptions {
  /** Where to go on inside of the node, and through its links. */
  readonly path?: string | undefined;
  /** The first step of the path alone. */
  readonly localResolve?: boolean | undefined;
}

export interface DagGetResult {
  /**
   * As the codecs of the client libraries decode it: `{ Data, Links }` of dag-pb, plain values with CIDs and bytes in them of
   * dag-cbor and dag-json, bytes of raw blocks.
   */
  readonly value: unknown;
  /** What of the path was not gone. */
  readonly remainderPath: string;
}

export interface DagPutOptions extends CallOptions {
  /** Codec in which nodes are stored: `dag-cbor` by default, `dag-pb`, `dag-json` or `raw`. */
  readonly storeCodec?: string | undefined;
  /** The node is given as bytes in this form; by default it is a value that is encoded here. */
  readonly inputCodec?: string | undefined;
  /** Hash function by name; `sha2-256` by default. */
  readonly hashAlg?: string | undefined;
  readonly pin?: boolean | undefined;
}

export interface DagImportOptions extends CallOptions {
  /** Pin the roots that the headers name; true by default. */
  readonly pinRoots?: boolean | undefined;
}

export interface DagImportResult {
  readonly root: {
    readonly cid: CID;
    /** Why it could not be pinned; empty when it is. */
    readonly pinErrorMsg: string;
  };
}

export interface DagResolveOptions extends CallOptions {
  readonly path?: string | undefined;
}

export interface DagResolveResult {
  readonly cid: CID;
  /** What of the path is inside of that node. */
  readonly remainderPath: string;
}

export interface DagStatOptions extends CallOptions {
  /** Give the figures so far after every block, too; true by default. */
  readonly progress?: boolean | undefined;
}

export interface DagStatResult {
  /** Bytes of the blocks, each counted once. */
  readonly size: number;
  readonly numBlocks: number;
}

export interface DagApi {
  /** The value of a node. @throws NodeError BLOCK_NOT_FOUND, and where the path leads nowhere */
  get(cid: CID | string, options?: DagGetOptions): Promise<DagGetResult>;
  /** What a path leads to, as the RPC API writes it as JSON. @throws NodeError */
  json(path: IpfsPath, options?: CallOptions): Promise<string>;
  /** Stores a node; it is on the disk when this resolves. @throws NodeError for what is no value of the codec */
  put(value: unknown, options?: DagPutOptions): Promise<CID>;
  /** Stores nodes that are given as bytes, several at a time. `inputCodec` says their form; `json` by default. @throws NodeError */
  putAll(nodes: AsyncIterable<AsyncIterable<Uint8Array>>, options?: DagPutOptions): AsyncIterable<CID>;
  /** To which node a path leads, and what of it is left inside of that. @throws NodeError */
  resolve(path: IpfsPath, options?: DagResolveOptions): Promise<DagResolveResult>;
  /** A node with all below it as a CAR file. @throws NodeError NODE_NOT_FOUND at a block that is missing */
  export(root: CID | string, options?: CallOptions): ByteStream;
  /** Stores the blocks of CAR files, and pins their roots. @throws NodeError at the first thing that is wrong */
  import(archives: CarSources, options?: DagImportOptions): AsyncIterable<DagImportResult>;
  /** Counts the blocks of a node with all below it; the last result is the whole. @throws NodeError */
  stat(root: IpfsPath, options?: DagStatOptions): AsyncIterable<DagStatResult>;
}

/** Nodes that are stored at the same time: they share flushes of the disk. */
const MAX_STORED_TOGETHER = 16;
/** Bytes of them; a longer one is stored alone. */
const MAX_BYTES_HELD = 16 * 1024 * 1024;

export function dagApi(node: LowLevelNode): DagApi {
  return {
    async get(given, { path, localResolve, ...options } = {}) {
      const how = reading(options);
      const load = async (cid: CID) => decodeValue(cid, await node.blocks.get(cid, how));
      const cid = typeof given === "string" ? parseCid(given) : given;
      if (path === undefined) return { value: await load(cid), remainderPath: "" };
      let last: DagGetResult | undefined;
      for await (const step of steps(cid, path, load)) {
        last = step;
        if (localResolve === true) break;
      }
      return last as DagGetResult;
    },
    async json(path, options = {}) {
      const how = reading(options);
      const { cid, remainder } = await node.resolve(pathText(path), how);
      const block = await node.reader(how)(cid);
      const whole = remainder.length === 0 ? undefined : valueIn(cid, block);
      const { text } = whole === undefined ? nodeJson(cid, block) : valueJson(remainder.reduce(member, whole));
      return text;
    },
    async put(value, options = {}) {
      const { storeCodec = "dag-cbor", inputCodec, hashAlg = "sha2-256", pin } = options;
      if (inputCodec !== undefined && !(value instanceof Uint8Array)) {
        throw new NodeError("Can only inputCodec on raw bytes that can be decoded");
      }
      const { signal } = reading(options);
      const bytes = inputCodec === undefined ? encodeValue(storeCodec, value) : (value as Uint8Array);
      const block = await nodeMaker(inputCodec ?? storeCodec, storeCodec, hashAlg)(bytes);
      await putBlocks(node, [block], { pin, signal });
      return block.cid;
    },
    async *putAll(nodes, { storeCodec = "dag-cbor", inputCodec = "json", hashAlg = "", pin, ...options } = {}) {
      const { signal } = reading(options);
      const make = nodeMaker(inputCodec, storeCodec, hashAlg);
      const held = new WeightedSemaphore(MAX_BYTES_HELD);
      yield* mapConcurrent(contents(nodes, held), MAX_STORED_TOGETHER, async (content) => {
        try {
          const block = await make(content);
          await putBlocks(node, [block], { pin, signal });
          return block.cid;
        } finally {
          held.release(content.length);
        }
      });
    },
    async resolve(given, { path, ...options } = {}) {
      const below = path === undefined ? "" : `/${path}`.replace(/\/\/+/g, "/");
      const { cid, remainder } = await node.resolve(`${pathText(given)}${below}`, reading(options));
      return { cid, remainderPath: remainder.join("/") };
    },
    export(root, options = {}) {
      const { buffers } = node.blocks;
      return new LazyByteStream({
        async open() {
          const how = reading(options);
          const read = node.reader(inSession({ ...how, buffers }));
          const archive = exportCar(rootIn(root), read, { signal: how.signal, buffers });
          return hinted(archive, how.offline === true, () => node.online);
        },
        release: (piece) => buffers.release(piece),
      });
    },
    import: (archives, options = {}) => imported(node, archives, options),
    stat: (root, options = {}) => counted(node, root, options),
  };
}

/** What each component of a path leads to, from link to link. @throws NodeError NO_LINK */
async function* steps(
  root: CID,
  path: string,
  load: (cid: CID) => Promise<unknown>,
): AsyncGenerator<DagGetResult, void, undefined> {
  const parts = path.split("/").filter((part) => part !== "");
  let cid = root;
  let value = await load(root);
  for (const [at, part] of parts.entries()) {
    if (value === null || value === undefined || !Object.hasOwn(Object(value), part)) {
      throw failure("NO_LINK", { name: `"${part}"`, cid: String(cid) });
    }
    value = (value as Record<string, unknown>)[part];
    yield { value, remainderPath: parts.slice(at + 1).join("/") };
    const link = CID.asCID(value);
    if (link === null) continue;
    cid = link;
    value = await load(link);
  }
  yield { value, remainderPath: "" };
}

/** Contents of the nodes, as long as they fit in what may be held. @throws NodeError */
async function* contents(nodes: AsyncIterable<AsyncIterable<Uint8Array>>, held: WeightedSemaphore) {
  for await (const body of nodes) {
    const content = await readBlockBody(body);
    await held.acquire(content.length);
    yield content;
  }
}

/** IPLD nodes of any codec. */

import { CID } from "multiformats/cid";
import { cidDefaults } from "../content/adder/import_config.ts";
import { putBlocks } from "../content/adder/put_blocks.ts";
import { exportCar } from "../content/car/export.ts";
import { codecNodeMaker, nodeMaker } from "../content/dag/put.ts";
import { inSession } from "../content/dag/reader.ts";
import { multicodecNamed } from "../formats/cid/codecs.ts";
import { parseCid } from "../formats/cid/text.ts";
import { member } from "../formats/dag_cbor/value.ts";
import { decodeBlockSteps, encodeBlockSteps } from "../formats/ipld/codec_values.ts";
import { nodeJsonSteps, valueInSteps, valueJsonSteps } from "../formats/ipld/data_model.ts";
import { decodeValueSteps, encodeValue } from "../formats/ipld/js_codecs.ts";
import { namedLinksWithTurns } from "../formats/ipld/links.ts";
import type { LowLevelNode } from "../node/low_level_node.ts";
import { readBlockBody, requireInline, requireSize } from "../storage/blockstore/make_block.ts";
import { mapConcurrent } from "../util/async/map_concurrent.ts";
import { inSlices } from "../util/async/steps.ts";
import { WeightedSemaphore } from "../util/async/weighted_semaphore.ts";
import { failure, type NodeError } from "../util/errors.ts";
import { type ByteStream, LazyByteStream } from "./byte_stream.ts";
import type { CarSources } from "./candidates.ts";
import { type CallOptions, type IpfsPath, pathText, readOptions } from "./common.ts";
import { counted, type DagSum, imported, rootIn, summed, withRemedy } from "./dag_archive.ts";

export type { DagSum };

export interface DagGetOptions extends CallOptions {
  /** Path to resolve within the node and through its links. */
  readonly path?: string | undefined;
  /** Resolve only the first component of the path. */
  readonly localResolve?: boolean | undefined;
}

export interface DagGetResult {
  /**
   * The value as the codecs of the client libraries decode it: `{ Data, Links }` for dag-pb, plain
   * values with CIDs and bytes in them for dag-cbor and dag-json, bytes for raw blocks.
   */
  readonly value: unknown;
  /** The part of the path that was not resolved. */
  readonly remainderPath: string;
}

export interface DagPutOptions extends CallOptions {
  /** Codec in which nodes are stored: `dag-cbor` by default, `dag-pb`, `dag-json` or `raw`. */
  readonly storeCodec?: string | undefined;
  /**
   * Encoding of the node if it is given as bytes. By default, the node is a value that this call
   * encodes.
   */
  readonly inputCodec?: string | undefined;
  /** Hash function by name; `sha2-256` by default. */
  readonly hashAlg?: string | undefined;
  readonly pin?: boolean | undefined;
}

export interface DagPutAllOptions extends DagPutOptions {
  /**
   * `multicodec`: codecs are named as in the multicodec table, and all nodes get CIDs of version 1.
   * By default the rules of go-ipfs 0.9 apply.
   */
  readonly codecs?: "multicodec" | undefined;
  /** Maximum size of a block in bytes; unlimited by default. */
  readonly maxBlock?: number | undefined;
  /**
   * Maximum size in bytes of a block that is stored in its CID (identity hash); unlimited by
   * default.
   */
  readonly maxInline?: number | undefined;
  /** If `hashAlg` is not given, use `Import.HashFunction` of the configuration. */
  readonly importDefaults?: boolean | undefined;
}

export interface DagEncodeOptions extends CallOptions {
  /** Codec by its name in the multicodec table; `dag-json` by default. */
  readonly outputCodec?: string | undefined;
}

export interface DagImportOptions extends CallOptions {
  /** Pin the roots listed in the headers of the archives; true by default. */
  readonly pinRoots?: boolean | undefined;
  /**
   * The call adds the number of blocks and bytes that it reads to these counters, duplicates
   * included.
   */
  readonly counts?: { blocks: number; bytes: number } | undefined;
  /** Maximum size of a block in bytes; unlimited by default. */
  readonly maxBlock?: number | undefined;
  /** Maximum size in bytes of a block that is its own CID (identity hash); unlimited by default. */
  readonly maxInline?: number | undefined;
  /**
   * The rules to apply, "0.43" by default. go-ipfs 0.9 reads version 1 of the format, requires
   * roots, accepts any CBOR, and fails after the last root if a root could not be pinned. Kubo 0.43
   * also reads version 2, and refuses dag-cbor that is not strict.
   */
  readonly rules?: "0.9" | "0.43" | undefined;
  /**
   * Announce the locally stored roots to the network at once; `wait` also waits for the
   * announcement. False by default.
   */
  readonly announce?: boolean | "wait" | undefined;
}

export interface DagExportOptions extends CallOptions {
  /** Accept a path below a CID or a name as well; false by default. */
  readonly paths?: boolean | undefined;
  /** Export only blocks that are stored locally, and omit missing blocks below the root. */
  readonly localOnly?: boolean | undefined;
}

export interface DagImportResult {
  readonly root: {
    readonly cid: CID;
    /** Why the root could not be pinned; empty if it was. */
    readonly pinErrorMsg: string;
    /** The error with the text `pinErrorMsg`; undefined if the root was pinned. */
    readonly pinError: NodeError | undefined;
  };
}

export interface DagResolveOptions extends CallOptions {
  readonly path?: string | undefined;
}

export interface DagResolveResult {
  readonly cid: CID;
  /** The rest of the path, within that node. */
  readonly remainderPath: string;
}

export interface DagStatOptions extends CallOptions {
  /** Also yield the running totals after every block; true by default. */
  readonly progress?: boolean | undefined;
}

export interface DagStatResult {
  /** Total bytes of the blocks, each counted once. */
  readonly size: number;
  readonly numBlocks: number;
}

/** A link of a node of any codec. */
export interface DagLink {
  /** The name; empty unless the codec is dag-pb. */
  readonly name: string;
  readonly cid: CID;
  /** Bytes of all blocks below, as the node states it; 0 unless the codec is dag-pb. */
  readonly size: number;
}

export interface DagApi {
  /**
   * Resolves to the value of a node. @throws NodeError BLOCK_NOT_FOUND, and for a path that cannot
   * be resolved
   */
  get(cid: CID | string, options?: DagGetOptions): Promise<DagGetResult>;
  /** Resolves to the value at a path as JSON, as the RPC API writes it. @throws NodeError */
  json(path: IpfsPath, options?: CallOptions): Promise<string>;
  /**
   * Resolves to the value at a path, encoded in a codec. @throws NodeError if the codec cannot
   * represent the value
   */
  encode(path: IpfsPath, options?: DagEncodeOptions): Promise<Uint8Array>;
  /**
   * Stores a node and resolves when it is durable. @throws NodeError for a value that the codec
   * cannot encode
   */
  put(value: unknown, options?: DagPutOptions): Promise<CID>;
  /**
   * Stores nodes that are given as bytes in the encoding `inputCodec` (default `json`), several
   * concurrently.
   *
   * @throws NodeError
   */
  putAll(nodes: AsyncIterable<AsyncIterable<Uint8Array>>, options?: DagPutAllOptions): AsyncIterable<CID>;
  /**
   * Resolves to the node that a path leads to, and to the rest of the path within that node.
   * @throws NodeError
   */
  resolve(path: IpfsPath, options?: DagResolveOptions): Promise<DagResolveResult>;
  /**
   * Resolves to the links of a node in its own order; a child that is linked twice is listed twice.
   *
   * @throws NodeError BLOCK_NOT_FOUND
   */
  links(cid: CID | string, options?: CallOptions): Promise<readonly DagLink[]>;
  /**
   * Exports the DAG below a root as a CAR file. @throws NodeError NODE_NOT_FOUND at a missing block
   */
  export(root: IpfsPath, options?: DagExportOptions): ByteStream;
  /**
   * Imports the blocks of CAR files, then pins their roots. @throws NodeError at the first error
   */
  import(archives: CarSources, options?: DagImportOptions): AsyncIterable<DagImportResult>;
  /** Counts the blocks of the DAG below a root; the last result is the total. @throws NodeError */
  stat(root: IpfsPath, options?: DagStatOptions): AsyncIterable<DagStatResult>;
  /** Counts the blocks of several DAGs, and those that they share. @throws NodeError */
  sum(roots: readonly IpfsPath[], options?: DagStatOptions): AsyncIterable<DagSum>;
}

/** Number of nodes stored concurrently, so that they share flushes to the disk. */
const MAX_STORED_TOGETHER = 16;
/** Total bytes of the nodes stored concurrently; a larger one is stored alone. */
const MAX_BUFFERED_BYTES = 16 * 1024 * 1024;

export function dagApi(node: LowLevelNode): DagApi {
  return {
    async get(given, { path, localResolve, ...options } = {}) {
      const how = readOptions(options);
      const load = async (cid: CID) => inSlices(decodeValueSteps(cid, await node.blocks.get(cid, how)));
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
      const how = readOptions(options);
      const { cid, remainder } = await node.resolve(pathText(path), how);
      const block = await node.reader(how)(cid);
      const whole = remainder.length === 0 ? undefined : await inSlices(valueInSteps(cid, block));
      const steps = whole === undefined ? nodeJsonSteps(cid, block) : valueJsonSteps(remainder.reduce(member, whole));
      return (await inSlices(steps)).text;
    },
    encode: (path, options = {}) => encoded(node, path, options),
    async put(value, options = {}) {
      const { storeCodec = "dag-cbor", inputCodec, hashAlg = "sha2-256", pin } = options;
      if (inputCodec !== undefined && !(value instanceof Uint8Array)) {
        throw failure("OPTION_CONFLICT", { reason: "Can only inputCodec on raw bytes that can be decoded" });
      }
      const { signal, offline } = readOptions(options);
      const bytes = inputCodec === undefined ? encodeValue(storeCodec, value) : (value as Uint8Array);
      const block = await nodeMaker(inputCodec ?? storeCodec, storeCodec, hashAlg)(bytes);
      await putBlocks(node, [block], { pin, signal, offline });
      return block.cid;
    },
    async *putAll(nodes, options = {}) {
      const { storeCodec = "dag-cbor", inputCodec = "json", pin, codecs, maxBlock, maxInline } = options;
      const given = { hash: options.hashAlg };
      const { hash: hashAlg = "" } = options.importDefaults === true ? cidDefaults(given, node.repo.config) : given;
      const { signal, offline } = readOptions(options);
      const make = (codecs === undefined ? nodeMaker : codecNodeMaker)(inputCodec, storeCodec, hashAlg);
      const buffered = new WeightedSemaphore(MAX_BUFFERED_BYTES);
      yield* mapConcurrent(contents(nodes, buffered), MAX_STORED_TOGETHER, async (content) => {
        try {
          const block = await make(content);
          requireSize(block.bytes, maxBlock);
          requireInline(block.cid, maxInline);
          await putBlocks(node, [block], { pin, signal, offline });
          return block.cid;
        } finally {
          buffered.release(content.length);
        }
      });
    },
    async resolve(given, { path, ...options } = {}) {
      const below = path === undefined ? "" : `/${path}`.replace(/\/\/+/g, "/");
      const { cid, remainder } = await node.resolve(`${pathText(given)}${below}`, readOptions(options));
      return { cid, remainderPath: remainder.join("/") };
    },
    async links(given, options = {}) {
      const cid = typeof given === "string" ? parseCid(given) : given;
      const found = await namedLinksWithTurns(cid, await node.blocks.get(cid, readOptions(options)));
      return found.map(({ name, cid: child, size }) => ({ name, cid: child, size }));
    },
    export(root, options = {}) {
      const { buffers } = node.blocks;
      return new LazyByteStream({
        open: () => exported(node, root, options),
        release: (piece) => buffers.release(piece),
      });
    },
    import: (archives, options = {}) => imported(node, archives, options),
    stat: (root, options = {}) => counted(node, root, options),
    sum: (roots, options = {}) => summed(node, roots, options),
  };
}

async function exported(node: LowLevelNode, root: IpfsPath, options: DagExportOptions) {
  const { localOnly = false, paths = false, ...others } = options;
  const how = readOptions({ ...others, ...(localOnly && { offline: true }) });
  const { buffers } = node.blocks;
  const read = node.reader(inSession({ ...how, buffers }));
  const cid = paths ? (await node.resolve(pathText(root), how)).cid : rootIn(root);
  if (localOnly && (await node.blocks.size(cid)) === undefined) throw failure("NODE_NOT_FOUND", { cid: String(cid) });
  // Reads the root first: a failure before the first byte can still set the status of a response.
  if (paths && !localOnly) await read(cid);
  const archive = exportCar(cid, read, { signal: how.signal, buffers, partial: localOnly });
  return withRemedy(archive, how.offline === true, () => node.online);
}

async function encoded(node: LowLevelNode, path: IpfsPath, options: DagEncodeOptions): Promise<Uint8Array> {
  const { outputCodec = "dag-json", ...others } = options;
  const code = multicodecNamed(outputCodec);
  const how = readOptions(others);
  const { cid, remainder } = await node.resolve(pathText(path), how);
  const block = await node.reader(how)(cid);
  if (remainder.length === 0 && code === cid.code) return block;
  const value = await inSlices(decodeBlockSteps(cid.code, block));
  return inSlices(encodeBlockSteps(code, remainder.reduce(member, value)));
}

/** Follows a path component by component through links. @throws NodeError NO_LINK */
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

/** Yields the bytes of each node, as soon as the memory limit allows it. @throws NodeError */
async function* contents(nodes: AsyncIterable<AsyncIterable<Uint8Array>>, buffered: WeightedSemaphore) {
  for await (const body of nodes) {
    const content = await readBlockBody(body);
    await buffered.acquire(content.length);
    yield content;
  }
}

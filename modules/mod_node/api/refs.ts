/** Lists the links of nodes. */
import { CID } from "multiformats/cid";
import { inSession } from "../content/dag/reader.ts";
import { type Ref, refs as refsBelow } from "../content/dag/refs.ts";
import { bulkReader } from "../content/unixfs/open.ts";
import { raw } from "../formats/cid/codecs.ts";
import { CidNumberMap } from "../formats/cid/set.ts";
import { type CidForm, cidWriter } from "../formats/cid/writer.ts";
import type { LowLevelNode } from "../node/low_level_node.ts";
import { failure, NodeError } from "../util/errors.ts";
import { type CallOptions, type IpfsPath, listOf, pathText, readOptions } from "./common.ts";

export interface RefsLocalOptions extends CallOptions {
  /** Report all blocks as raw CIDs of version 1, whatever CIDs they were stored under. */
  readonly asRaw?: boolean | undefined;
}

export interface RefsOptions extends CallOptions, CidForm {
  /** Format of a line, with `<src>`, `<dst>` and `<linkname>`; `<dst>` by default or when empty. */
  readonly format?: string | undefined;
  /** Format each link as `<src> -> <dst>`. */
  readonly edges?: boolean | undefined;
  /** Omit duplicates. */
  readonly unique?: boolean | undefined;
  /** Also list the links of linked nodes. */
  readonly recursive?: boolean | undefined;
  /** With `recursive`, the maximum depth; -1, the default, for no limit. */
  readonly maxDepth?: number | undefined;
}

export interface RefsResult {
  /** The link in the requested format. */
  readonly ref: string;
  /** Why the links of a node cannot be listed; otherwise empty. */
  readonly err: string;
}

export interface RefsApi {
  readonly refs: {
    /** Lists the links of nodes, in the order of each node. @throws NodeError */
    (path: IpfsPath | readonly IpfsPath[], options?: RefsOptions): AsyncIterable<RefsResult>;
    /** Lists all blocks stored on this machine. */
    local(options?: RefsLocalOptions): AsyncIterable<RefsResult>;
  };
}

export function refsApi(node: LowLevelNode): RefsApi {
  async function* refs(paths: IpfsPath | readonly IpfsPath[], options: RefsOptions = {}): AsyncGenerator<RefsResult> {
    const line = lineWriter(options);
    const how = readOptions(options);
    const roots = [];
    for (const path of listOf(paths)) roots.push((await node.resolve(pathText(path), how)).cid);
    const { unique = false, recursive = false, maxDepth = -1 } = options;
    const readRoot = node.reader(inSession(how));
    const seen = new CidNumberMap();
    const walk = {
      unique,
      maxDepth: recursive ? maxDepth : 1,
      seen,
      signal: how.signal,
      read: bulkReader(readRoot),
    };
    for (const root of roots) {
      try {
        for await (const ref of refsBelow(root, await readRoot(root), walk)) yield { ref: line(ref), err: "" };
      } catch (error) {
        if (!(error instanceof NodeError)) throw error;
        yield { ref: "", err: error.message };
      }
    }
  }

  async function* local({ asRaw = false, ...options }: RefsLocalOptions = {}): AsyncGenerator<RefsResult> {
    const { signal } = readOptions(options);
    await node.files.settle();
    for await (const cid of node.blocks.store.keys()) {
      if (signal?.aborted) return;
      yield { ref: String(asRaw ? CID.createV1(raw, cid.multihash) : cid), err: "" };
    }
  }

  return { refs: Object.assign(refs, { local }) };
}

/** @throws NodeError for options that exclude each other, and for an unknown base */
function lineWriter({ format: given = "<dst>", edges = false, ...form }: RefsOptions): (ref: Ref) => string {
  const write = cidWriter(form);
  if (edges && given !== "<dst>")
    throw failure("OPTION_CONFLICT", { reason: "using format argument with edges is not allowed" });
  const format = edges ? "<src> -> <dst>" : given || "<dst>";
  return ({ from, to, name }) =>
    format
      .replaceAll("<src>", () => write(from))
      .replaceAll("<dst>", () => write(to))
      .replaceAll("<linkname>", () => name);
}

/** The filestore: blocks whose bytes are in external files. */
import type { CID } from "multiformats/cid";
import { parseCid } from "../formats/cid/text.ts";
import type { LowLevelNode } from "../node/low_level_node.ts";
import type { Filestore, Inspection } from "../storage/filestore/filestore.ts";
import { type Status, statuses } from "../storage/filestore/reference.ts";
import { failure } from "../util/errors.ts";
import { type CallOptions, listOf, type ReadOptions, readOptions } from "./common.ts";

export interface FilestoreListOptions extends CallOptions {
  /** List in the order of the files' paths. */
  readonly fileOrder?: boolean | undefined;
}

export interface FilestoreVerifyOptions extends FilestoreListOptions {
  /**
   * After listing a reference whose file does not contain the bytes of the block, remove that
   * reference; false by default.
   */
  readonly removeBad?: boolean | undefined;
}

export type FilestoreStatus = keyof typeof statuses;

export interface FilestoreObject {
  readonly status: FilestoreStatus;
  /** Error message; empty if the block is intact. */
  readonly errorMsg: string;
  /** Undefined if the argument was not a valid CID. */
  readonly key: CID | undefined;
  /** Path below the root of the filestore, or a URL; empty if the block is not in the filestore. */
  readonly filePath: string;
  /** Offset of the block in the file, and its size, in bytes. */
  readonly offset: number;
  readonly size: number;
}

type Keys = CID | string | readonly (CID | string)[];

/** All methods throw NodeError FILESTORE_OFF unless the filestore or the urlstore is enabled. */
export interface FilestoreApi {
  /** Yields blocks that are in both the filestore and the block store. */
  dups(options?: CallOptions): AsyncIterable<CID>;
  /** Lists the given blocks, which are checked first, or all blocks, with their files. */
  ls(keys?: Keys, options?: FilestoreListOptions): AsyncIterable<FilestoreObject>;
  /** Like `ls`, but checks every block against its file, and can remove broken references. */
  verify(keys?: Keys, options?: FilestoreVerifyOptions): AsyncIterable<FilestoreObject>;
}

export function filestoreApi(node: LowLevelNode): FilestoreApi {
  const opened = (): Filestore => {
    if (node.filestore === undefined) throw failure("FILESTORE_OFF");
    return node.filestore;
  };

  return {
    async *dups(options = {}) {
      const { signal } = readOptions(options);
      for await (const cid of opened().duplicates()) {
        signal?.throwIfAborted();
        yield cid;
      }
    },
    async *ls(keys = [], { fileOrder = false, ...options } = {}) {
      const filestore = opened();
      yield* objects(filestore, listOf(keys), unchecked(filestore.list({ byFile: fileOrder })), readOptions(options));
    },
    async *verify(keys = [], { fileOrder = false, removeBad = false, ...options } = {}) {
      const filestore = opened();
      const how = readOptions(options);
      for await (const object of objects(filestore, listOf(keys), filestore.verify({ byFile: fileOrder }), how)) {
        const { key, status } = object;
        if (removeBad && key !== undefined && badStatuses.has(status)) await filestore.forget(key);
        yield object;
      }
    },
  };
}

/** Statuses of references whose content is missing or wrong. */
const badStatuses: ReadonlySet<FilestoreStatus> = new Set(["fileError", "fileNotFound", "fileChanged", "otherError"]);

/** The given blocks, or all if none are given. */
async function* objects(
  filestore: Filestore,
  keys: readonly (CID | string)[],
  all: AsyncIterable<Inspection>,
  { signal }: ReadOptions,
): AsyncGenerator<FilestoreObject> {
  for (const key of keys) {
    signal?.throwIfAborted();
    yield objectOf(await inspected(filestore, key));
  }
  if (keys.length > 0) return;
  for await (const block of all) {
    signal?.throwIfAborted();
    yield objectOf(block);
  }
}

async function inspected(filestore: Filestore, key: CID | string): Promise<Inspection> {
  let cid: CID;
  try {
    cid = typeof key === "string" ? parseCid(key) : key;
  } catch (error) {
    return { cid: undefined, status: statuses.otherError, message: `${key}: ${(error as Error).message}` };
  }
  return filestore.inspect(cid);
}

async function* unchecked(blocks: ReturnType<Filestore["list"]>): AsyncGenerator<Inspection> {
  for await (const block of blocks) yield { ...block, status: statuses.ok, message: "" };
}

const statusNames = new Map(Object.entries(statuses).map(([name, status]) => [status, name as FilestoreStatus]));

const objectOf = ({ cid, status, message, reference }: Inspection): FilestoreObject => ({
  status: statusNames.get(status as Status) as FilestoreStatus,
  errorMsg: message,
  key: cid,
  filePath: reference?.path ?? "",
  offset: reference?.offset ?? 0,
  size: reference?.size ?? 0,
});

/** Blocks whose bytes are kept in files outside. */
import type { CID } from "multiformats/cid";
import { parseCid } from "../formats/cid/text.ts";
import type { LowLevelNode } from "../low_level_node.ts";
import type { Filestore, Inspection } from "../storage/filestore/filestore.ts";
import { type Status, statuses } from "../storage/filestore/reference.ts";
import { failure } from "../util/errors.ts";
import { type CallOptions, listOf, type Reading, reading } from "./common.ts";

export interface FilestoreListOptions extends CallOptions {
  /** In order of the files' paths. */
  readonly fileOrder?: boolean | undefined;
}

export type FilestoreStatus = keyof typeof statuses;

export interface FilestoreObject {
  readonly status: FilestoreStatus;
  /** Empty where nothing is wrong. */
  readonly errorMsg: string;
  /** Undefined of one that is no CID. */
  readonly key: CID | undefined;
  /** Path below the root of the filestore, or a URL; empty where the block is none of the filestore. */
  readonly filePath: string;
  /** Bytes. */
  readonly offset: number;
  readonly size: number;
}

type Keys = CID | string | readonly (CID | string)[];

/** Its methods throw NodeError FILESTORE_OFF where nothing may be referred to. */
export interface FilestoreApi {
  /** Blocks that the block store has, too. */
  dups(options?: CallOptions): AsyncIterable<CID>;
  /** Blocks and the files they stand in: those that are named, which are checked, or all. */
  ls(keys?: Keys, options?: FilestoreListOptions): AsyncIterable<FilestoreObject>;
  /** The same; all are checked against the files they stand in. */
  verify(keys?: Keys, options?: FilestoreListOptions): AsyncIterable<FilestoreObject>;
}

export function filestoreApi(node: LowLevelNode): FilestoreApi {
  const opened = (): Filestore => {
    if (node.filestore === undefined) throw failure("FILESTORE_OFF");
    return node.filestore;
  };

  return {
    async *dups(options = {}) {
      const { signal } = reading(options);
      for await (const cid of opened().duplicates()) {
        signal?.throwIfAborted();
        yield cid;
      }
    },
    async *ls(keys = [], { fileOrder = false, ...options } = {}) {
      const filestore = opened();
      yield* objects(filestore, listOf(keys), unchecked(filestore.list({ byFile: fileOrder })), reading(options));
    },
    async *verify(keys = [], { fileOrder = false, ...options } = {}) {
      const filestore = opened();
      yield* objects(filestore, listOf(keys), filestore.verify({ byFile: fileOrder }), reading(options));
    },
  };
}

/** Those that were asked for, or else all. */
async function* objects(
  filestore: Filestore,
  keys: readonly (CID | string)[],
  all: AsyncIterable<Inspection>,
  { signal }: Reading,
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

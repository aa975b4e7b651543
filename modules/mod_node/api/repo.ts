/** Statistics and maintenance of the repo. */
import { CID } from "multiformats/cid";
import { raw } from "../formats/cid/codecs.ts";
import type { LowLevelNode } from "../node/low_level_node.ts";
import { failure } from "../util/errors.ts";
import { type CallOptions, readOptions } from "./common.ts";
import { type RepoVerifyOptions, type RepoVerifyResult, verified } from "./repo_verify.ts";

export interface RepoGcOptions extends CallOptions {
  /** Report failures among the results instead of at the end. */
  readonly streamErrors?: boolean | undefined;
  /** Report blocks as raw CIDs of version 1, whatever CIDs they were stored under. */
  readonly asRaw?: boolean | undefined;
}

/** Either a removed block or a failure. */
export interface RepoGcResult {
  readonly cid: CID | null;
  readonly err: Error | null;
}

export interface RepoStatOptions extends CallOptions {
  /** Only determine `repoSize` and `storageMax`. */
  readonly sizeOnly?: boolean | undefined;
}

export interface RepoStatResult {
  /** Number of stored blocks; 0 with `sizeOnly`. */
  readonly numObjects: bigint;
  /** Bytes that the stores use on disk. */
  readonly repoSize: bigint;
  /** Folder of the repo; "" with `sizeOnly`. */
  readonly repoPath: string;
  /** Version of the repo, such as `fs-repo@11`; "" with `sizeOnly`. */
  readonly version: string;
  /** `Datastore.StorageMax` in bytes; 2^64 - 1 if it is not configured. */
  readonly storageMax: bigint;
}

export type { RepoVerifyOptions, RepoVerifyResult };

export interface RepoApi {
  /**
   * Collects garbage: removes all blocks that neither pins nor MFS nor mounts need.
   *
   * @throws NodeError at the end if there were failures
   */
  gc(options?: RepoGcOptions): AsyncIterable<RepoGcResult>;
  stat(options?: RepoStatOptions): Promise<RepoStatResult>;
  /** Version of the repo format, such as `11`. */
  version(options?: CallOptions): Promise<string>;
  /**
   * Reads every block and verifies its hash. @throws NodeError BLOCKS_CORRUPT at the end if corrupt
   * blocks remain
   */
  verify(options?: RepoVerifyOptions): AsyncIterable<RepoVerifyResult>;
  /** Removes lock files left by dead processes, and resolves to their names. */
  fsck(options?: CallOptions): Promise<readonly string[]>;
}

/** The value of `storageMax` if no limit is configured. */
const unlimited = 2n ** 64n - 1n;

async function* gc(
  node: LowLevelNode,
  { streamErrors, asRaw = false, ...options }: RepoGcOptions,
): AsyncGenerator<RepoGcResult> {
  const { signal } = readOptions(options);
  const errors: string[] = [];
  for await (const result of node.collect(signal)) {
    if ("removed" in result) {
      yield { cid: asRaw ? CID.createV1(raw, result.removed.multihash) : result.removed, err: null };
      continue;
    }
    errors.push(result.error);
    if (streamErrors === true) yield { cid: null, err: new Error(result.error) };
  }
  if (errors.length > 0) {
    throw failure("COLLECTION_FAILED", {
      reason: streamErrors === true ? "encountered errors during gc run" : errors.join("; "),
    });
  }
}

export function repoApi(node: LowLevelNode): RepoApi {
  const { repo } = node;
  return {
    gc: (options = {}) => gc(node, options),
    async stat({ sizeOnly } = {}) {
      const { blocks, bytes, storageMax } = await node.stat();
      const whole = sizeOnly !== true;
      return {
        numObjects: BigInt(whole ? blocks : 0),
        repoSize: BigInt(bytes),
        repoPath: whole ? repo.path : "",
        version: whole ? `fs-repo@${repo.version}` : "",
        storageMax: storageMax === undefined ? unlimited : BigInt(storageMax),
      };
    },
    async version() {
      return repo.version;
    },
    verify: (options = {}) => verified(node, options),
    fsck: () => repo.clean(),
  };
}

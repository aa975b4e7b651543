/**
 * Turns the options of an add into settings. CID versions and rejected combinations follow the
 * rules of the reference.
 */
import type { Names } from "../../formats/cid/codecs.ts";
import { type HashFunction, hashNamed, sha256 } from "../../formats/cid/hashes.ts";
import type { Chunker } from "../../formats/unixfs/chunker/chunker.ts";
import { parseChunker } from "../../formats/unixfs/chunker/parse.ts";
import type { UnixTime } from "../../formats/unixfs/format.ts";
import { failure } from "../../util/errors.ts";
import type { AddSettings } from "../unixfs/add.ts";
import { isFanout } from "../unixfs/shard.ts";
import type { Sharding } from "../unixfs/sharding.ts";

/** Undefined stands for an option that was not given. */
export interface UnixfsAddOptions {
  readonly chunker?: string | undefined;
  readonly cidVersion?: number | undefined;
  /** Name of a hash function, in any letter case. */
  readonly hash?: string | undefined;
  /** Names of the hash functions. */
  readonly names?: Names;
  readonly rawLeaves?: boolean | undefined;
  readonly inline?: boolean | undefined;
  readonly inlineLimit?: number | undefined;
  /** Maximum `inlineLimit` in bytes. */
  readonly maxInline?: number | undefined;
  readonly nocopy?: boolean | undefined;
  readonly trickle?: boolean | undefined;
  readonly wrap?: boolean | undefined;
  readonly progress?: boolean | undefined;
  /** When directories are sharded (HAMT); never by default. */
  readonly sharded?: Sharding | undefined;
  /** Number of slots of a shard. */
  readonly fanout?: number | undefined;
  /**
   * Maximum number of links of an interior node of a file. 0 and negative numbers mean the default.
   */
  readonly maxFileLinks?: number | undefined;
  /** Mode of every file and directory. */
  readonly mode?: number | undefined;
  readonly mtime?: UnixTime | undefined;
  /** Entries keep their own mode and modification time. */
  readonly preserveMode?: boolean | undefined;
  readonly preserveMtime?: boolean | undefined;
  /** Store empty directories, too; true by default. */
  readonly emptyDirs?: boolean | undefined;
  /** Maximum size of a chunk in bytes. */
  readonly maxChunk?: number | undefined;
}

/** With one link per node, the tree would be infinite. */
const MIN_FILE_LINKS = 2;

/**
 * @throws NodeError for options that exclude each other. An invalid chunker fails at the first file
 * instead.
 */
export function addSettings(options: UnixfsAddOptions): AddSettings {
  const { inline = false, inlineLimit = 32, maxInline = Number.POSITIVE_INFINITY, nocopy = false } = options;
  if (inline && inlineLimit > maxInline) {
    throw failure("OPTION_INVALID", {
      reason: `inline-limit ${inlineLimit} exceeds maximum allowed size of ${maxInline} bytes`,
    });
  }
  const hash = hashOf(options.hash, options.names);
  if (nocopy && options.rawLeaves === false) {
    throw failure("OPTION_CONFLICT", { reason: "nocopy option requires '--raw-leaves' to be enabled as well" });
  }
  const version = versionOf(options.cidVersion, hash);
  const { facts, preserve } = factsIn(options);
  const hasFacts = facts !== undefined || preserve !== undefined;
  if (hasFacts && (nocopy || options.rawLeaves === true)) {
    throw failure("OPTION_CONFLICT", {
      reason: "raw-leaves can't be used with UnixFS metadata like mode or modification time",
    });
  }
  return {
    version,
    hash,
    inlineLimit: inline ? inlineLimit : undefined,
    rawLeaves: !hasFacts && (options.rawLeaves ?? (nocopy || version === 1)),
    chunker: lazily(options),
    maxInline,
    trickle: options.trickle === true,
    sharded: options.sharded ?? false,
    fanout: fanoutOf(options.fanout),
    maxLinks: fileLinks(options.maxFileLinks),
    facts,
    preserve,
    noEmpty: options.emptyDirs === false,
    wrap: options.wrap === true,
    progress: options.progress === true,
  };
}

function factsIn({
  mode,
  mtime,
  preserveMode,
  preserveMtime,
}: UnixfsAddOptions): Pick<AddSettings, "facts" | "preserve"> {
  const preserves = preserveMode === true || preserveMtime === true;
  return {
    facts: mode === undefined && mtime === undefined ? undefined : { mode, mtime },
    preserve: preserves ? { mode: preserveMode === true, mtime: preserveMtime === true } : undefined,
  };
}

function fanoutOf(fanout: number | undefined): number | undefined {
  if (fanout === undefined || isFanout(fanout)) return fanout;
  throw failure("OPTION_INVALID", { reason: `HAMT fanout must be a power of 2, between 8 and 1024 (got ${fanout})` });
}

function fileLinks(given: number | undefined): number | undefined {
  if (given === undefined || given <= 0) return undefined;
  if (given < MIN_FILE_LINKS)
    throw failure("OPTION_INVALID", { reason: `max-file-links must be at least ${MIN_FILE_LINKS} (got ${given})` });
  return given;
}

/** Returns a hash function by its name, in any letter case. @throws NodeError */
export function hashOf(name: string | undefined, names?: Names): HashFunction {
  if (name === undefined) return sha256;
  const lower = name.toLowerCase();
  const hash = hashNamed(lower, names);
  if (hash === undefined) throw failure("HASH_UNKNOWN", { name: lower });
  return hash;
}

function versionOf(given: number | undefined, hash: HashFunction): 0 | 1 {
  const unknown = () => failure("OPTION_INVALID", { reason: `unknown CID version: ${given}` });
  if (hash === sha256) {
    if (given === undefined || given <= 0) return 0;
    if (given === 1) return 1;
    throw unknown();
  }
  if (given === 0) throw failure("CID_NOT_CONVERTIBLE", { reason: "CIDv0 only supports sha2-256" });
  if (given !== undefined && given !== 1 && given !== -1) throw unknown();
  return 1;
}

function lazily({ chunker = "", maxChunk, names }: UnixfsAddOptions): () => Chunker {
  let make: (() => Chunker) | undefined;
  return () => {
    make ??= parseChunker(chunker, maxChunk, names);
    return make();
  };
}

/**
 * Reads `Import.*` of the configuration: defaults of import options, and when directories are
 * sharded.
 */
import { hashNamed, sha256 } from "../../formats/cid/hashes.ts";
import type { ConfigFile } from "../../storage/repo/config.ts";
import { failure } from "../../util/errors.ts";
import { quote } from "../../util/go/text.ts";
import { parseSize } from "../../util/size.ts";
import { isFanout, SHARD_WIDTH } from "../unixfs/shard.ts";
import { type ShardLimits, type SizeEstimate, sizeEstimates } from "../unixfs/sharding.ts";
import type { UnixfsAddOptions } from "./settings.ts";

const chunkers = /^(buzhash|size-0*[1-9]\d*|rabin(-0*[1-9]\d*){3})$/;
const DEFAULT_THRESHOLD = "256KiB";
const layouts: readonly (string | null)[] = ["balanced", "trickle", null];

/** When a directory is sharded because of its size. */
export interface SizeSharding {
  readonly sharded: ShardLimits;
  readonly fanout: number;
}

type ConfigValues = Pick<ConfigFile, "value">;

/**
 * Reads the settings that a node has from its start on. @throws NodeError that names a key of
 * `Import` with an unusable value
 */
export function shardingAtStart(config: ConfigValues): SizeSharding {
  requireImportable(config);
  const layout = config.value("Import.UnixFSDAGLayout");
  if (!layouts.includes(layout)) throw wrong("UnixFSDAGLayout", `must be balanced or trickle, got ${layout}`);
  const fanout = config.value("Import.UnixFSHAMTDirectoryMaxFanout") ?? SHARD_WIDTH;
  if (!isFanout(fanout)) {
    throw wrong("UnixFSHAMTDirectoryMaxFanout", `must be a power of 2, between 8 and 1024 (got ${fanout})`);
  }
  const estimate = config.value("Import.UnixFSHAMTDirectorySizeEstimation") ?? "links";
  if (!isEstimate(estimate)) {
    throw wrong("UnixFSHAMTDirectorySizeEstimation", `must be one of ${sizeEstimates.join(", ")}, got ${estimate}`);
  }
  return shardingBySize(config);
}

/** @throws NodeError that names a key of `Import` with which no file could be added */
function requireImportable(config: ConfigValues): void {
  const version = config.value("Import.CidVersion") ?? 0;
  if (version !== 0 && version !== 1) throw wrong("CidVersion", `must be 0 or 1, got ${version}`);
  const links = config.value("Import.UnixFSFileMaxLinks") ?? 1;
  if (links <= 0) throw wrong("UnixFSFileMaxLinks", `must be positive, got ${links}`);
  const entries = config.value("Import.UnixFSDirectoryMaxLinks") ?? 0;
  if (entries < 0) throw wrong("UnixFSDirectoryMaxLinks", `must be non-negative, got ${entries}`);
  const chunker = config.value("Import.UnixFSChunker") ?? "buzhash";
  if (!chunkers.test(chunker)) {
    const expected = 'expected "size-<bytes>", "rabin-<min>-<avg>-<max>", or "buzhash"';
    throw wrong("UnixFSChunker", `invalid format: ${quote(chunker)} (${expected})`);
  }
  const hash = config.value("Import.HashFunction") ?? sha256.name;
  if (hashNamed(hash.toLowerCase(), "multicodec") === undefined)
    throw wrong("HashFunction", `unrecognized: ${quote(hash)}`);
}

/**
 * Reads the settings as they are in the configuration now. As in the reference, an unknown estimate
 * counts as `links` until the next start rejects it.
 */
export function shardingBySize(config: ConfigValues): SizeSharding {
  const fanout = config.value("Import.UnixFSHAMTDirectoryMaxFanout") ?? SHARD_WIDTH;
  const word = config.value("Import.UnixFSHAMTDirectorySizeEstimation") ?? "";
  const estimate = isEstimate(word) ? word : "links";
  const threshold = parseSize(config.value("Import.UnixFSHAMTDirectorySizeThreshold") || DEFAULT_THRESHOLD);
  const maxLinks = Math.max(0, config.value("Import.UnixFSDirectoryMaxLinks") ?? 0);
  return { sharded: { estimate, threshold, maxLinks }, fanout };
}

type ConfiguredOptions = Pick<
  UnixfsAddOptions,
  "chunker" | "cidVersion" | "hash" | "rawLeaves" | "trickle" | "maxFileLinks" | "mode" | "mtime"
>;

/** Fills in the options that the caller did not give, from the configuration. */
export function withImportConfig<T extends ConfiguredOptions>(given: T, config: ConfigValues): T {
  return {
    ...given,
    chunker: given.chunker ?? config.value("Import.UnixFSChunker") ?? undefined,
    ...cidDefaults(given, config),
    rawLeaves: given.rawLeaves ?? config.value("Import.UnixFSRawLeaves") ?? undefined,
    trickle: given.trickle ?? config.value("Import.UnixFSDAGLayout") === "trickle",
    maxFileLinks: given.maxFileLinks || (config.value("Import.UnixFSFileMaxLinks") ?? undefined),
  };
}

interface CidForm {
  readonly cidVersion?: number | undefined;
  readonly hash?: string | undefined;
}

/** Fills in version and hash function of CIDs, from the configuration. */
export const cidDefaults = ({ cidVersion, hash }: CidForm, config: ConfigValues): CidForm => ({
  cidVersion: cidVersion ?? config.value("Import.CidVersion") ?? undefined,
  hash: hash ?? config.value("Import.HashFunction") ?? undefined,
});

/**
 * Version and hash function of new CIDs in MFS, unless options set them. Version 0 if nothing is
 * configured.
 */
export function namespaceForm(config: ConfigValues): CidForm {
  const hash = config.value("Import.HashFunction") ?? DEFAULT_HASH;
  return { cidVersion: config.value("Import.CidVersion") ?? 0, hash: hash === DEFAULT_HASH ? undefined : hash };
}

const DEFAULT_HASH = "sha2-256";

const isEstimate = (word: string): word is SizeEstimate => (sizeEstimates as readonly string[]).includes(word);

const wrong = (key: string, what: string) => failure("CONFIG_INVALID", { reason: `Import.${key} ${what}` });

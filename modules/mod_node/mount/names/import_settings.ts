/** Decides how content that is written below the node's own names becomes blocks. */
import { cidDefaults, type SizeSharding } from "../../content/adder/import_config.ts";
import { cidSettings } from "../../content/mfs/cid_settings.ts";
import type { CidSettings } from "../../content/unixfs/build.ts";
import type { Chunker } from "../../formats/unixfs/chunker/chunker.ts";
import { parseChunker } from "../../formats/unixfs/chunker/parse.ts";
import type { ConfigFile } from "../../storage/repo/config.ts";

/** The choices of the caller that mounts. */
export interface ImportChoices {
  /** Take the chunker and the form of CIDs from `Import.*` of the configuration. Default true. */
  readonly importDefaults?: boolean | undefined;
  /** Store a file that has one raw leaf, and neither mode nor time, as that leaf. Default false. */
  readonly joinsLeaf?: boolean | undefined;
  /** Maximum size in bytes of a chunk of `Import.UnixFSChunker`. Default 1 MiB. */
  readonly maxChunk?: number | undefined;
  /**
   * When directories become sharded by their size. By default `Experimental.ShardingEnabled`
   * decides.
   */
  readonly sharding?: SizeSharding | undefined;
}

export interface ImportSettings extends Pick<ImportChoices, "joinsLeaf" | "sharding"> {
  /** Whether modes and modification times are stored. */
  readonly storesMode: boolean;
  readonly storesTime: boolean;
  /** Form of the CIDs of the whole tree; undefined to leave it unchanged. */
  readonly form?: CidSettings | undefined;
  /** Chunks of 256 KiB by default. */
  readonly chunker?: (() => Chunker) | undefined;
}

/**
 * Reads the settings as they are in the configuration now. @throws NodeError for unusable values of
 * `Import.*`
 */
export function importSettings(
  config: Pick<ConfigFile, "value">,
  { importDefaults = true, joinsLeaf, maxChunk, sharding }: ImportChoices,
): ImportSettings {
  const { cidVersion: version, hash } = importDefaults ? cidDefaults({}, config) : {};
  const text = importDefaults ? config.value("Import.UnixFSChunker") : undefined;
  return {
    storesMode: config.value("Mounts.StoreMode") ?? false,
    storesTime: config.value("Mounts.StoreMtime") ?? false,
    joinsLeaf,
    sharding,
    form: cidSettings({ version, hash, names: "multicodec" }),
    chunker: parseChunker(text ?? "", maxChunk),
  };
}

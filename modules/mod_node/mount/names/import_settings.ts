/** How what is written below the node's own names becomes blocks. */
import { cidDefaults, type SizeSharding } from "../../content/adder/import_config.ts";
import { cidSettings } from "../../content/mfs/cid_settings.ts";
import type { CidSettings } from "../../content/unixfs/build.ts";
import type { Chunker } from "../../formats/unixfs/chunker/chunker.ts";
import { parseChunker } from "../../formats/unixfs/chunker/parse.ts";
import type { ConfigFile } from "../../storage/repo/config.ts";

/** What a caller that mounts chooses. */
export interface ImportChoices {
  /** Take chunks and the form of CIDs from `Import.*` of the configuration; true by default. */
  readonly importDefaults?: boolean | undefined;
  /**
   * A file that has one raw leaf, and neither mode nor time, is stored as that leaf; false by
   * default.
   */
  readonly joinsLeaf?: boolean | undefined;
  /** Greatest chunk in bytes that `Import.UnixFSChunker` may make; 1 MiB by default. */
  readonly maxChunk?: number | undefined;
  /**
   * When directories become sharded by their size; by default as `Experimental.ShardingEnabled`
   * says.
   */
  readonly sharding?: SizeSharding | undefined;
}

export interface ImportSettings extends Pick<ImportChoices, "joinsLeaf" | "sharding"> {
  /** Whether modes, and times of changes, are stored. */
  readonly storesMode: boolean;
  readonly storesTime: boolean;
  /** Of the whole tree; undefined for that which it has. */
  readonly form?: CidSettings | undefined;
  /** By default chunks of 256 KiB. */
  readonly chunker?: (() => Chunker) | undefined;
}

/** As the configuration is now. @throws NodeError for values of `Import.*` of no use */
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

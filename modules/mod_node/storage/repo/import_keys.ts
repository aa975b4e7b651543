/** The configuration keys with the defaults for importing files and directories. */
import { key } from "./config_key.ts";
import { flag, optionalInt, optionalSize, optionalText } from "./value_kinds.ts";

export const importKeys = {
  "Import.CidVersion": key(
    "live",
    optionalInt,
    undefined,
    "Default version of the CIDs that imports make; null is 0. Like all keys of `Import`, it applies to calls at the level 0.43 and within the process.",
  ),
  "Import.UnixFSRawLeaves": key("live", flag, undefined, "Raw leaves in `add`; null follows the version of CIDs."),
  "Import.UnixFSChunker": key(
    "live",
    optionalText,
    undefined,
    "How `add` splits files into chunks; null is `size-262144`. The namespace reads it at the start.",
  ),
  "Import.HashFunction": key("live", optionalText, undefined, "Hash function of imports; null is `sha2-256`."),
  "Import.UnixFSFileMaxLinks": key(
    "live",
    optionalInt,
    undefined,
    "Maximum number of links in an inner node of a file; null is 174.",
  ),
  "Import.UnixFSDirectoryMaxLinks": key(
    "live",
    optionalInt,
    undefined,
    "Number of entries beyond which a directory is sharded; null and 0 are no limit. The namespace reads it at the start.",
  ),
  "Import.UnixFSHAMTDirectoryMaxFanout": key(
    "live",
    optionalInt,
    undefined,
    "Number of slots in a shard, a power of 2 from 8 to 1024; null is 256. The namespace reads it at the start.",
  ),
  "Import.UnixFSHAMTDirectorySizeThreshold": key(
    "start",
    optionalSize,
    undefined,
    "Size beyond which a directory is sharded; null is 256KiB.",
  ),
  "Import.UnixFSHAMTDirectorySizeEstimation": key(
    "live",
    optionalText,
    undefined,
    "How the size of a directory is measured: `links` (names and CIDs), `block`, or `disabled` for no limit; null is `links`. The namespace reads it at the start.",
  ),
  "Import.UnixFSDAGLayout": key(
    "live",
    optionalText,
    undefined,
    "Layout of files: `balanced` or `trickle`; null is `balanced`.",
  ),
  "Import.FastProvideRoot": key(
    "live",
    flag,
    undefined,
    "Whether `add`, `dag/import`, `pin/add` and `pin/update` announce the root immediately, unless a call at the level 0.43 says otherwise; null is true.",
  ),
  "Import.FastProvideDAG": key(
    "live",
    flag,
    undefined,
    "Whether they also announce all blocks below the root; null is false.",
  ),
  "Import.FastProvideWait": key(
    "live",
    flag,
    undefined,
    "Whether these calls wait for the announcement; null is false.",
  ),
} as const;

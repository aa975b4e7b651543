/** The keys of the configuration that say how files and directories are imported where a call does not say it. */
import { key } from "./config_key.ts";
import { flag, optionalInt, optionalSize, optionalText } from "./value_kinds.ts";

export const importKeys = {
  "Import.CidVersion": key(
    "live",
    optionalInt,
    undefined,
    "Version of the CIDs that imports make where a call does not say it; null is 0. As all of `Import`, it counts for calls at the level 0.43 and within the process.",
  ),
  "Import.UnixFSRawLeaves": key("live", flag, undefined, "Raw leaves in `add`; null goes by the version of CIDs."),
  "Import.UnixFSChunker": key(
    "live",
    optionalText,
    undefined,
    "How `add` cuts files; null is `size-262144`. Read at the start for the namespace.",
  ),
  "Import.HashFunction": key("live", optionalText, undefined, "Hash function of imports; null is `sha2-256`."),
  "Import.UnixFSFileMaxLinks": key("live", optionalInt, undefined, "Links of an inner node of a file; null is 174."),
  "Import.UnixFSDirectoryMaxLinks": key(
    "live",
    optionalInt,
    undefined,
    "Entries beyond which a directory is sharded; null and 0 are any number. Read at the start for the namespace.",
  ),
  "Import.UnixFSHAMTDirectoryMaxFanout": key(
    "live",
    optionalInt,
    undefined,
    "Slots of a shard, a power of 2 from 8 to 1024; null is 256. Read at the start for the namespace.",
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
    "What counts as that size: `links` (names and CIDs), `block`, or `disabled` for nothing; null is `links`. Read at the start for the namespace.",
  ),
  "Import.UnixFSDAGLayout": key(
    "live",
    optionalText,
    undefined,
    "Layout of files: `balanced`, as null is, or `trickle`.",
  ),
  "Import.FastProvideRoot": key(
    "live",
    flag,
    undefined,
    "Whether `add`, `dag/import`, `pin/add` and `pin/update` tell the network at once, where a call at the level 0.43 does not say it; null is true.",
  ),
  "Import.FastProvideDAG": key(
    "live",
    flag,
    undefined,
    "Likewise, of all that is below as well, which here goes along with the root; null is false.",
  ),
  "Import.FastProvideWait": key("live", flag, undefined, "Whether these calls wait until it is told; null is false."),
} as const;

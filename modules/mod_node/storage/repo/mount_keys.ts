/**
 * The configuration keys for mounting the node as folders, and for storing attributes that are set
 * there.
 */
import { key } from "./config_key.ts";
import { bool, flag, text } from "./value_kinds.ts";

export const mountKeys = {
  "Mounts.IPFS": key("live", text, "/ipfs", "Default of `mount`."),
  "Mounts.IPNS": key("live", text, "/ipns", "Default of `mount`."),
  "Mounts.FuseAllowOther": key("live", bool, false, "Mount with `allow_other`."),
  "Mounts.StoreMode": key(
    "live",
    flag,
    undefined,
    "Store permissions that are set below `/ipns`; null is false. Read when the folder is mounted, like the next key.",
  ),
  "Mounts.StoreMtime": key(
    "live",
    flag,
    undefined,
    "Store the creation and modification times of files below `/ipns`; null is false.",
  ),
} as const;

/** The keys of the configuration that say where the node is mounted as folders, and what is stored of what is set there. */
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
    "Store permissions that are set below `/ipns`; null is false. Read when it is mounted, as the next key is.",
  ),
  "Mounts.StoreMtime": key(
    "live",
    flag,
    undefined,
    "Store when files below `/ipns` were made and written, and times that are set; null is false.",
  ),
} as const;

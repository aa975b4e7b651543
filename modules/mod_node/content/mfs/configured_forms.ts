/** The forms of MFS directories, from the configuration. */
import type { ConfigFile } from "../../storage/repo/config.ts";
import { namespaceForm } from "../adder/import_config.ts";
import { cidSettings } from "./cid_settings.ts";
import type { NamespaceDeps } from "./namespace.ts";

/** Whether directories are sharded, and the form of the root when the node starts. */
export function configuredForms(config: Pick<ConfigFile, "value">): Pick<NamespaceDeps, "sharded" | "rootForm"> {
  const sharded = () => config.value("Experimental.ShardingEnabled");
  if (config.value("Import.CidVersion") === null && config.value("Import.HashFunction") === null) return { sharded };
  const { cidVersion: version, hash } = namespaceForm(config);
  return { sharded, rootForm: () => cidSettings({ version, hash, names: "multicodec" }) };
}

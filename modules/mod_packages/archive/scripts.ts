/** Finds the scripts that npm would run when a package is installed. */
import { access } from "node:fs/promises";
import { join } from "node:path";
import { isTable, type UnpackedManifest } from "./read_manifest.ts";

const installScripts = ["preinstall", "install", "postinstall"];

/** Returns the name of the first install script; undefined if there is none. */
export async function installScript(folder: string, manifest: UnpackedManifest): Promise<string | undefined> {
  const scripts = isTable(manifest.scripts) ? manifest.scripts : {};
  const found = installScripts.find((name) => Object.hasOwn(scripts, name) && scripts[name] !== "");
  if (found !== undefined || manifest.gypfile === false) return found;
  // npm runs node-gyp for a package with this file that has no script of its own.
  const hasGypfile = await access(join(folder, "binding.gyp")).then(
    () => true,
    () => false,
  );
  return hasGypfile ? "install (node-gyp, because of its binding.gyp)" : undefined;
}

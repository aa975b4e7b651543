import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { bundled } from "../../config/bundled.ts";
import type { Handler, ModuleDefinition } from "../types.ts";
import { reasonOf } from "../util/errors.ts";
import { UsageError } from "./command.ts";
import { suggestion } from "./words.ts";

/** A module made from a value, in the form that the host takes. */
export type NamedModule = ModuleDefinition & { readonly name: string };

/**
 * Returns the module for an argument of `run`: the path of a module's file or folder; any other
 * folder becomes a module that serves it as a site.
 * @throws {UsageError} when there is no such file or folder
 */
export function moduleOf(argument: string, cwd: string): string | NamedModule {
  const path = resolve(cwd, argument);
  const stats = statSync(path, { throwIfNoEntry: false });
  if (stats === undefined) throw new UsageError(`There is no file or folder ${argument}${neighbour(argument, path)}`);
  return stats.isDirectory() && !isModuleFolder(path) ? siteModule(path) : path;
}

/** Returns `: did you mean ./mod_notes.ts?`, by the names in the same folder, or "". */
function neighbour(argument: string, path: string): string {
  try {
    const name = basename(path);
    return suggestion(name, readdirSync(dirname(path)), argument.slice(0, argument.lastIndexOf(name)));
  } catch {
    return ""; // The folder does not exist, or cannot be listed.
  }
}

/**
 * Returns true if the folder's name or manifest marks it as a module; a site may have an index.js,
 * too.
 */
function isModuleFolder(folder: string): boolean {
  if (basename(folder).startsWith("mod_")) return true;
  const manifest = join(folder, "package.json");
  if (!existsSync(manifest)) return false;
  try {
    const { modhost }: { modhost?: { kind?: string } } = JSON.parse(readFileSync(manifest, "utf8"));
    return modhost?.kind === "module";
  } catch (error) {
    throw new UsageError(`${manifest} cannot be read: ${reasonOf(error)}`);
  }
}

/** The part of the file server's exports that is used here. */
interface FileServer {
  serve(options: { readonly path: string; readonly directory_index: boolean }): Handler;
}

function siteModule(folder: string): NamedModule {
  const name = basename(folder) || "files";
  return {
    name: `site_${name}`,
    depends: ["http", bundled.fileServer, bundled.folderLister],
    load(module) {
      const { serve } = module.depends<FileServer>(bundled.fileServer);
      const handler = serve({ path: folder, directory_index: true });
      module.provides("http", { default_path: `/${name}`, route: { "GET /*": handler } });
    },
  };
}

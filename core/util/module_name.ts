/** Names of modules, as the configuration, the command line and packages spell them. */
import { basename, extname } from "node:path";

/** Extensions of the files that modules can be written in; the first ones are preferred. */
export const moduleExtensions: readonly string[] = [".ts", ".js", ".mjs", ".cjs"];

/**
 * Returns `http_hello` for "mod_http_hello", its file, its folder, or the package
 * "modhost-mod-http_hello".
 */
export function moduleName(entry: string): string {
  const base = basename(entry);
  const stem = moduleExtensions.includes(extname(base)) ? base.slice(0, -extname(base).length) : base;
  return stem.replace(/^modhost-mod-/, "").replace(/^mod_/, "");
}

/** Makes the rules by which the kernel restricts the process of a sandboxed module. */
import { existsSync, realpathSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import type { SandboxPolicy } from "../sandbox/index.ts";
import { packageFolder } from "../util/package.ts";
import type { SourceFile } from "./messages.ts";
import type { ModuleRights } from "./rights.ts";

/**
 * Parts of this package that its code needs: those that it has when it runs from source or built.
 */
const ownParts = ["package.json", "core", "modules", "dist", "config", "node_modules"];

/**
 * Returns the policy of a module. It reads its own folder and its packages, and has a temporary
 * folder. A module of a single file shares its folder with others, so it reads that file alone.
 * `heap`: bytes that its heap may have.
 */
export function policyOf(source: SourceFile, rights: ModuleRights, temporary: string, heap: number): SandboxPolicy {
  const { file, directory, root } = source;
  const within = (path: string) => resolve(root ?? directory, path);
  const own = ownParts.map((part) => join(packageFolder(), part));
  const read = [root ?? file, ...packagesOf(root ?? directory), ...own, ...rights.read.map(within)];
  const granted = rights.env.flatMap((name) => {
    const value = process.env[name];
    return value === undefined ? [] : [[name, value]];
  });
  return {
    read: realPaths(read),
    write: realPaths([temporary, ...rights.write.map(within)]),
    run: realPaths(rights.run),
    addons: rights.addons,
    env: { ...Object.fromEntries(granted), TMPDIR: temporary, NODE_OPTIONS: nodeOptions(heap) },
    namespaces: rights.namespaces,
    user: "own",
  };
}

/**
 * Returns the options of Node.js that the process starts with. Its code finds packages under the
 * same conditions as the host.
 */
function nodeOptions(heap: number): string {
  const conditions = process.execArgv.filter((option) => /^(?:-C|--conditions=)/.test(option));
  return [...conditions, `--max-old-space-size=${Math.ceil(heap / 2 ** 20)}`].join(" ");
}

/** Returns the folders of packages that code in this folder can import from. */
function packagesOf(folder: string): string[] {
  const found = [join(folder, "node_modules")];
  for (let at = folder; at !== dirname(at); at = dirname(at)) found.push(join(dirname(at), "node_modules"));
  return found;
}

const realPaths = (paths: readonly string[]): string[] => [
  ...new Set(paths.filter((path) => existsSync(path)).map((path) => realpathSync(path))),
];

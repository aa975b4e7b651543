import { createRequire, registerHooks } from "node:module";
import { dirname, sep } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import type { ModuleSource } from "./locate.ts";

/**
 * Versions of evaluations. Node caches an ES module by its URL forever. Every fresh evaluation
 * therefore imports a URL with a version, and the version is passed on to every file that belongs
 * to the module.
 */
const versions = new Map<string, Version>();

interface Version {
  /** Returns true if the file is a part of the module. */
  belongs(file: string, specifier: string): boolean;
  /** Called with each file that belongs to the module, before the file is evaluated. */
  found(file: string): void;
}

const require = createRequire(import.meta.url);
let hooked = false;

/**
 * Makes an import of `modhost` resolve to this host's own exports where no package of that name is
 * installed.
 */
export function installHooks(): void {
  if (!hooked) registerHooks({ resolve, load });
  hooked = true;
}

/**
 * Imports a module's current file and all files that belong to it; `found` is called with each
 * file.
 */
export function importFresh(
  source: ModuleSource & { readonly file: string },
  found: (file: string) => void = () => undefined,
): Promise<Record<string, unknown>> {
  installHooks();
  const version = String(versions.size + 1);
  const belongs = belongsTo(source);
  versions.set(version, { belongs, found });
  for (const file of Object.keys(require.cache)) {
    if (belongs(file, "./")) delete require.cache[file];
  }
  return import(`${pathToFileURL(source.file).href}?v=${version}`);
}

/**
 * Decides which files belong to a module: everything in its own folder; for a single file, the
 * files that it imports by relative paths and that are not another module.
 */
function belongsTo({ file, root }: ModuleSource & { readonly file: string }) {
  const folder = (root ?? dirname(file)) + sep;
  return (path: string, specifier: string) => {
    if (path === file) return true;
    if (!path.startsWith(folder)) return false;
    const parts = path.slice(folder.length).split(sep);
    if (parts.includes("node_modules")) return false;
    return root !== undefined || (specifier.startsWith(".") && parts[0]?.startsWith("mod_") === false);
  };
}

type Hooks = Parameters<typeof registerHooks>[0];
type ResolveHook = NonNullable<Hooks["resolve"]>;

const resolve: ResolveHook = (specifier, context, next) => {
  const isOwn = specifier === "modhost" || specifier.startsWith("modhost/");
  const resolved = isOwn ? own(specifier, context, next) : next(specifier, context);
  const version = versions.get(versionOf(context.parentURL));
  // The libraries of bundled modules are evaluated once, for all importers.
  if (isOwn || version === undefined || context.conditions.includes("require")) return resolved;
  if (!resolved.url.startsWith("file:")) return resolved;
  const url = new URL(resolved.url);
  const file = fileURLToPath(url);
  if (url.search !== "" || !version.belongs(file, specifier)) return resolved;
  version.found(file);
  return { ...resolved, url: `${resolved.url}?v=${versionOf(context.parentURL)}` };
};

/** Resolves `modhost` to the running host if no such package is installed there. */
function own(...[specifier, context, next]: Parameters<ResolveHook>): ReturnType<ResolveHook> {
  try {
    return next(specifier, context);
  } catch (error) {
    if (!(error instanceof Error && "code" in error && notInstalled.has(error.code))) throw error;
    // Node.js resolves a `require` from the calling file and ignores the parent given here.
    if (context.conditions.includes("require")) return { url: import.meta.resolve(specifier), shortCircuit: true };
    return next(specifier, { ...context, parentURL: import.meta.url });
  }
}

const notInstalled: ReadonlySet<unknown> = new Set(["ERR_MODULE_NOT_FOUND", "MODULE_NOT_FOUND"]);

/**
 * Evaluates CommonJS files of a module with `require`, whose cache can be cleared, and passes their
 * exports to the importer. Node's own translation has a cache that cannot be cleared.
 */
const load: NonNullable<Hooks["load"]> = (url, context, next) => {
  const loaded = next(url, context);
  if (!versions.has(versionOf(url)) || !loaded.format?.startsWith("commonjs")) return loaded;
  const file = JSON.stringify(fileURLToPath(url));
  const exported: unknown = require(fileURLToPath(url));
  const names = typeof exported === "object" || typeof exported === "function" ? Object.keys(exported ?? {}) : [];
  const fields = names.filter((name) => name !== "default").map((name) => JSON.stringify(name));
  const source = [
    'import { createRequire } from "node:module";',
    `const exported = createRequire(${file})(${file});`,
    "export default exported;",
    ...fields.map((name, at) => `const _${at} = exported[${name}]; export { _${at} as ${name} };`),
  ].join("\n");
  return { format: "module", source, shortCircuit: true };
};

function versionOf(url: string | undefined): string {
  return /\?v=(\d+)$/.exec(url ?? "")?.[1] ?? "";
}

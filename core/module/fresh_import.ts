import { createRequire, registerHooks } from "node:module";
import { dirname, sep } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import type { ModuleSource } from "./locate.ts";

/**
 * An ES module is never forgotten by its URL. A fresh evaluation is therefore an import under a URL that carries a
 * version, and the version has to go on to every file that belongs to the module.
 */
const versions = new Map<string, Version>();

interface Version {
  /** Is the file a part of the module? */
  belongs(file: string, specifier: string): boolean;
  /** Told of each such file before it is evaluated. */
  found(file: string): void;
}

const require = createRequire(import.meta.url);
let hooked = false;

/** From now on an import of `modhost` gives this host's own exports where no package of that name is installed. */
export function installHooks(): void {
  if (!hooked) registerHooks({ resolve, load });
  hooked = true;
}

/** Imports a module's file, and all that belongs to it, as it is on disk now; `found` is told of each file. */
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

/** All of the module's own folder; of a loose file's folder what is imported by relative paths and is no other module. */
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
  // What a bundled module offers as a library is evaluated once, whoever imports it.
  if (isOwn || version === undefined || context.conditions.includes("require")) return resolved;
  if (!resolved.url.startsWith("file:")) return resolved;
  const url = new URL(resolved.url);
  const file = fileURLToPath(url);
  if (url.search !== "" || !version.belongs(file, specifier)) return resolved;
  version.found(file);
  return { ...resolved, url: `${resolved.url}?v=${versionOf(context.parentURL)}` };
};

/** `modhost` from where no such package is installed is the running host. */
function own(...[specifier, context, next]: Parameters<ResolveHook>): ReturnType<ResolveHook> {
  try {
    return next(specifier, context);
  } catch (error) {
    if (!(error instanceof Error && "code" in error && notInstalled.has(error.code))) throw error;
    return next(specifier, { ...context, parentURL: import.meta.url });
  }
}

const notInstalled: ReadonlySet<unknown> = new Set(["ERR_MODULE_NOT_FOUND", "MODULE_NOT_FOUND"]);

/**
 * CommonJS of a module is evaluated by `require`, whose cache can be emptied, and handed to its importer: what Node's own
 * translation remembers of such a file outlives that cache.
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

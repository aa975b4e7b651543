/** Finds out where a module is to come from. */
import { stat } from "node:fs/promises";
import { isAbsolute, relative, resolve } from "node:path";
import { PackageError } from "./errors.ts";
import { parseSpec } from "./registry/libraries.ts";

/** The origin of a module's package. Each kind has its own fields. */
export type PackageSource = RegistrySource | FileSource;

export interface RegistrySource {
  readonly kind: "npm";
  /** The names to look up, in this order. */
  readonly names: readonly string[];
  /** A version, a range or a tag; empty for the latest version. */
  readonly wanted: string;
}

export interface FileSource {
  readonly kind: "tarball" | "folder";
  /** An absolute path. */
  readonly path: string;
}

/**
 * Parses `modhost-mod-shop@^1`, `@scope/x`, the name of a module such as `shop`, or a path.
 * Relative paths start from `folder`. The source of a lock entry, such as `npm:shop@^1`, is
 * accepted as well.
 * @throws {PackageError} SOURCE_UNKNOWN, SOURCE_REFUSED, SOURCE_MISSING
 */
export async function parseSource(text: string, folder: string): Promise<PackageSource> {
  if (/^(?:file:|[./\\]|~)/.test(text) || isAbsolute(text) || /\.t(?:ar\.)?gz$/.test(text)) {
    if (!/^(?:git|https?)/.test(text)) return await fileSource(text, folder);
  }
  const bare = text.replace(/^npm:/, "");
  let spec: ReturnType<typeof parseSpec>;
  try {
    spec = parseSpec(bare);
  } catch {
    throw new PackageError("SOURCE_UNKNOWN", { source: text });
  }
  if (spec.type === "git" || spec.type === "remote") {
    throw new PackageError("SOURCE_REFUSED", {
      source: text,
      kind: spec.type === "git" ? "a git repository" : "a URL",
    });
  }
  if (!["version", "range", "tag"].includes(spec.type) || spec.name === null || spec.name === undefined) {
    throw new PackageError("SOURCE_UNKNOWN", { source: text });
  }
  return { kind: "npm", names: namesOf(spec.name), wanted: spec.rawSpec === "*" ? "" : spec.rawSpec };
}

/** Returns how a lock entry writes a source. Paths are relative to the folder of the lock file. */
export function sourceText(source: PackageSource, name: string, folder: string): string {
  if (source.kind === "npm") return `npm:${name}${source.wanted === "" ? "" : `@${source.wanted}`}`;
  const path = relative(folder, source.path).replaceAll("\\", "/");
  return `file:${path.startsWith(".") || isAbsolute(path) ? path : `./${path}`}`;
}

/** Returns the name of the module in a package: `shop` for `modhost-mod-shop`. */
export function moduleNameOf(name: string): string {
  const last = name.slice(name.indexOf("/") + 1);
  return last.replace(/^modhost-mod-/, "").replace(/^mod_/, "");
}

function namesOf(name: string): string[] {
  return /^@|^modhost-mod-|^mod_/.test(name) ? [name] : [`modhost-mod-${name}`, name];
}

async function fileSource(text: string, folder: string): Promise<FileSource> {
  const path = resolve(folder, text.replace(/^file:/, ""));
  const found = await stat(path).catch(() => undefined);
  if (found === undefined) throw new PackageError("SOURCE_MISSING", { source: text });
  if (found.isDirectory()) return { kind: "folder", path };
  if (found.isFile() && /\.(?:tgz|tar\.gz)$/.test(path)) return { kind: "tarball", path };
  throw new PackageError("SOURCE_UNKNOWN", { source: text });
}

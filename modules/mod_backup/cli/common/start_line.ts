/** Builds the command that starts a restored host on the restored folders, and on no others. */
import { existsSync } from "node:fs";
import { homedir } from "node:os";
import { extname, isAbsolute, join, resolve, sep } from "node:path";
import { type Config, loadConfig } from "../../../../core/index.ts";
import type { Named, SnapshotFolder } from "../../repository/format.ts";
import { below } from "../../snapshot/layout.ts";

export interface Start {
  readonly line: string;
  /** Messages about paths in the configuration that still lead to the original. */
  readonly warnings: readonly string[];
}

type Restored = Pick<Named, "config" | "folders">;

/** Option names that an environment variable can set. */
const optionName = /^[a-z][a-z0-9_]*$/;

/**
 * @param env the environment of the restore command: its variables may still be set when the host
 * is started
 */
export async function startOf({ config, folders }: Restored, to: string, env: NodeJS.ProcessEnv): Promise<Start> {
  const read = await configOf(config, to);
  const set = new Map<string, string>();
  const warnings: string[] = [];
  for (const folder of folders) {
    const option = optionOf(folder);
    if (option === undefined) continue;
    const path = join(to, folder.to);
    if (isUsed(read, env, { folder, option, path, folders, to })) continue;
    if (optionName.test(option)) set.set(option, path);
    else warnings.push(`The contents of ${folder.was} are now in ${path}: set the option of that module to this path`);
  }
  for (const { option, path, written } of read === undefined ? [] : originalPaths(read, folders, to)) {
    if (set.has(option)) continue;
    if (option === path.option) set.set(option, path.now);
    else warnings.push(`${path.option} is ${written}, a path of the original: change it to the restored ${path.now}`);
  }
  const variables = [...set].map(([option, path]) => `MODHOST_${option.toUpperCase()}=${quoted(path)} `).join("");
  const line =
    config === undefined
      ? `cd ${quoted(to)} && ${variables}modhost run`
      : `${variables}modhost run --config ${quoted(join(to, config))}`;
  return { line, warnings };
}

/**
 * Returns the option that names the folder; undefined for the folder of the config file and for
 * single files.
 */
function optionOf({ name, option }: SnapshotFolder): string | undefined {
  if (name === "config" || name === "files") return undefined;
  return option ?? (name === "data" ? "data_path" : name);
}

/**
 * Loads the restored configuration without the environment; undefined for a script, which is not
 * run, and for an unreadable file.
 */
async function configOf(config: string | undefined, to: string): Promise<Config | undefined> {
  if (config !== undefined && [".ts", ".js", ".mjs", ".cjs"].includes(extname(config))) return undefined;
  const path = config === undefined ? undefined : join(to, config);
  const read = await loadConfig({ path, cwd: to, env: {} }).catch(() => undefined);
  if (read !== undefined && pathOf(read, read.written("data_path") ?? "data") === undefined) return undefined;
  // Without a config file of its own the host would use one in a folder above.
  return config === undefined && read?.file !== undefined ? undefined : read;
}

interface RestoredFolder {
  readonly folder: SnapshotFolder;
  readonly option: string;
  /** The path after the restore. */
  readonly path: string;
  readonly folders: readonly SnapshotFolder[];
  readonly to: string;
}

/**
 * Whether a host with this configuration and environment uses the restored folder without further
 * settings.
 */
function isUsed(config: Config | undefined, env: NodeJS.ProcessEnv, restored: RestoredFolder): boolean {
  const { folder, option, path, folders } = restored;
  const variable = env[`MODHOST_${option.toUpperCase()}`];
  if (config === undefined) return false;
  if (variable !== undefined && pathOf(config, variable) !== path) return false;
  if (folder.name === "data") return config.value("data_path") === path;
  const written = config.written(option);
  if (written !== undefined) return pathOf(config, written) === path;
  // A folder without an option is found relative to the data folder.
  const data = folders.find(({ name }) => name === "data");
  return (
    folder.option === undefined && data !== undefined && below(join("/", data.to), join("/", folder.to)) !== undefined
  );
}

/** Resolves a path the way the host resolves an option of type path. */
function pathOf(config: Config, written: unknown): string | undefined {
  if (typeof written !== "string") return undefined;
  return resolve(config.directory, written.replace(/^~(?=[\\/]|$)/, homedir()));
}

interface OriginalPath {
  readonly option: string;
  readonly written: string;
  readonly path: { readonly option: string; readonly now: string };
}

/**
 * Yields the absolute paths in the configuration that lead to files of the original which were
 * restored as well.
 */
function* originalPaths(config: Config, folders: readonly SnapshotFolder[], to: string): Generator<OriginalPath> {
  // The innermost first: data may be below the folder of the config file.
  const moved = folders
    .filter(({ name, was }) => name !== "files" && was !== sep)
    .toSorted((one, other) => other.was.length - one.was.length);
  for (const option of config.names()) {
    for (const [optionPath, written] of textsIn(config.written(option), option)) {
      if (!isAbsolute(written) && !written.startsWith("~/")) continue;
      const was = pathOf(config, written) as string;
      const folder = moved.find((each) => below(each.was, was) !== undefined);
      if (folder === undefined) continue;
      const now = join(to, folder.to, below(folder.was, was) as string);
      const isRestored = folder.name === "data" || existsSync(now);
      if (now !== was && isRestored) yield { option, written, path: { option: optionPath, now } };
    }
  }
}

/** Yields each text in a value, with its path. */
function* textsIn(value: unknown, path: string): Generator<readonly [string, string]> {
  if (typeof value === "string") yield [path, value];
  if (typeof value !== "object" || value === null) return;
  for (const [name, inner] of Object.entries(value)) {
    yield* textsIn(inner, Array.isArray(value) ? `${path}[${name}]` : `${path}.${name}`);
  }
}

/** Quotes a path as one word for a shell. */
const quoted = (path: string): string => (/^[\w./-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`);

import { constants } from "node:fs";
import { access, readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { type Loader, lilconfig } from "lilconfig";
import { unwrapped } from "../util/default_export.ts";
import { ModhostError, reasonOf } from "../util/errors.ts";
import { packageFolder, projectFolder } from "../util/package.ts";
import { Config } from "./config.ts";
import { isObject } from "./convert.ts";
import { environmentOptions } from "./environment.ts";
import { readModulesLock } from "./modules_lock.ts";
import { scriptPosition } from "./script_position.ts";
import { readJson, readText, readUtf8, readYaml } from "./text.ts";

export interface LoadConfigOptions {
  /**
   * The folder where the search starts; without a file, relative paths are resolved from it.
   * Default: the current folder.
   */
  readonly cwd?: string;
  /** A config file: no search takes place. */
  readonly path?: string | undefined;
  /** A text that replaces the content of the file `path`. */
  readonly text?: string | undefined;
  /** A text that replaces the content of `modules.lock`. */
  readonly lock?: string | undefined;
  /** False: no file is read, not even the embedded default; `path` is still used. Default true. */
  readonly search?: boolean;
  /** The environment with variables MODHOST_<OPTION>; default: that of the process. */
  readonly env?: NodeJS.ProcessEnv;
  /** Values that take precedence over file and environment. */
  readonly values?: Record<string, unknown>;
}

const extensions = ["ts", "js", "mjs", "cjs", "json", "yaml", "yml"];

/** File names that are searched for in a folder; the first one found is used. */
export const configFileNames: readonly string[] = [
  ...extensions.map((extension) => `modhost.config.${extension}`),
  ".modhostrc",
  ...extensions.map((extension) => `.modhostrc.${extension}`),
  "package.json",
];

const require = createRequire(import.meta.url);
let imports = 0;

const script: Loader = async (path) => {
  await readUtf8(path);
  delete require.cache[path];
  const exported = await import(`${pathToFileURL(path).href}?config=${++imports}`);
  return unwrapped(exported).default;
};

const yaml: Loader = async (path) => readYaml(path, await readUtf8(path));

const loaders: Record<string, Loader> = {
  ".ts": script,
  ".js": script,
  ".mjs": script,
  ".cjs": script,
  ".json": async (path) => readJson(path, await readUtf8(path)),
  ".yaml": yaml,
  ".yml": yaml,
  noExt: yaml,
};

/**
 * Loads the configuration: the named file, or the first of `configFileNames` from `cwd` up to the
 * folder of the nearest package.json (only `cwd` if there is none), or the embedded default. It is
 * not checked yet. The modules of `modules.lock` in the same folder are installed.
 * @throws {ModhostError} CONFIG_NOT_FOUND, CONFIG_UNREADABLE, MODULES_LOCK_INVALID
 */
export async function loadConfig(options: LoadConfigOptions = {}): Promise<Config> {
  const cwd = resolve(options.cwd ?? process.cwd());
  const searched: Read | undefined = options.search === false ? { file: undefined, values: {} } : undefined;
  const found =
    options.path === undefined
      ? (searched ?? (await search(cwd)))
      : await readNamed(resolve(cwd, options.path), options.text);
  const directory = found?.file === undefined ? cwd : dirname(found.file);
  return new Config({
    written: found === undefined ? await embeddedDefault() : (found.values ?? {}),
    isEmpty: found !== undefined && found.values === undefined,
    environment: environmentOptions(options.env ?? process.env),
    values: options.values ?? {},
    file: found?.file,
    isDefault: found === undefined,
    directory,
    ...(options.search === false && found?.file === undefined
      ? {}
      : { installed: await readModulesLock(directory, options.lock) }),
  });
}

interface Read {
  readonly file: string | undefined;
  /** Undefined for a file that is empty, or contains only comments. */
  readonly values: Record<string, unknown> | undefined;
}

async function search(cwd: string): Promise<Read | undefined> {
  let reading = "";
  const watched = Object.entries(loaders).map(([extension, load]): [string, Loader] => [
    extension,
    (path, content) => {
      reading = path;
      return load(path, content);
    },
  ]);
  const explorer = lilconfig("modhost", {
    cache: false,
    searchPlaces: [...configFileNames],
    stopDir: projectFolder(cwd) ?? cwd,
    ignoreEmptySearchPlaces: false,
    loaders: Object.fromEntries(watched),
  });
  try {
    const result = await explorer.search(cwd);
    return result === null ? undefined : { file: result.filepath, values: await resolveExport(result) };
  } catch (error) {
    throw await unreadable(reading, error);
  }
}

async function readNamed(file: string, text: string | undefined): Promise<Read> {
  if (text !== undefined) {
    try {
      return { file, values: await resolveExport({ config: await readText(file, text), filepath: file }) };
    } catch (error) {
      throw new ModhostError("CONFIG_UNREADABLE", { path: file, reason: reasonOf(error) }, { cause: error });
    }
  }
  try {
    await access(file, constants.R_OK);
  } catch (error) {
    const missing = error instanceof Error && "code" in error && error.code === "ENOENT";
    throw missing ? new ModhostError("CONFIG_NOT_FOUND", { path: file }) : await unreadable(file, error);
  }
  try {
    const explorer = lilconfig("modhost", { cache: false, ignoreEmptySearchPlaces: false, loaders });
    return { file, values: await resolveExport(await explorer.load(file)) };
  } catch (error) {
    throw await unreadable(file, error);
  }
}

async function embeddedDefault(): Promise<Record<string, unknown>> {
  const file = join(packageFolder(), "config", "default.yaml");
  const values = await readYaml(file, await readFile(file, "utf8"));
  return isObject(values) ? values : {};
}

/**
 * Resolves the export of a config file: an object, a function that returns one, or a promise of
 * either. Undefined for an empty file.
 */
async function resolveExport(
  result: { config: unknown; filepath: string; isEmpty?: boolean } | null,
): Promise<Read["values"]> {
  let value: unknown = await result?.config;
  if (typeof value === "function") value = await value();
  if (value === null || (value === undefined && result?.isEmpty)) return undefined;
  if (isObject(value)) return value;
  const got = value === undefined ? "nothing" : Array.isArray(value) ? "a list" : `a ${typeof value}`;
  throw new Error(`it gives ${got}, but a config is an object, a function that returns one, or a promise of one`);
}

/**
 * Returns the error for a file that cannot be read. Errors of scripts get their position added;
 * messages about YAML and JSON contain it already.
 */
async function unreadable(file: string, error: unknown): Promise<ModhostError> {
  if (ModhostError.is(error)) return error;
  const position = await scriptPosition(file, error);
  const reason = position === undefined ? reasonOf(error) : `${reasonOf(error)} (${position})`;
  return new ModhostError("CONFIG_UNREADABLE", { path: file, reason }, { cause: error });
}

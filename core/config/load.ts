import { constants } from "node:fs";
import { access, readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { type Loader, lilconfig } from "lilconfig";
import { ModhostError, reasonOf } from "../util/errors.ts";
import { packageFolder, projectFolder } from "../util/package.ts";
import { Config, environmentOptions } from "./config.ts";
import { isObject } from "./convert.ts";
import { placeOf } from "./place.ts";
import { readJson, readText, readYaml } from "./text.ts";

export interface LoadConfigOptions {
  /** The search begins here; without a file, relative paths count from here. Default: the current folder. */
  readonly cwd?: string;
  /** A named file: nothing is searched. */
  readonly path?: string | undefined;
  /** Of the named file: read in the place of what it holds. */
  readonly text?: string | undefined;
  /** False: no file at all, not even the embedded default; `path` still counts. Default true. */
  readonly search?: boolean;
  /** Variables MODHOST_<OPTION>; default: the environment of the process. */
  readonly env?: NodeJS.ProcessEnv;
  /** Win over file and environment. */
  readonly values?: Record<string, unknown>;
}

const extensions = ["ts", "js", "mjs", "cjs", "json", "yaml", "yml"];

/** File names looked for in a folder, the first one found is taken. */
export const searchPlaces: readonly string[] = [
  ...extensions.map((extension) => `modhost.config.${extension}`),
  ".modhostrc",
  ...extensions.map((extension) => `.modhostrc.${extension}`),
  "package.json",
];

const require = createRequire(import.meta.url);
let imports = 0;

const script: Loader = async (path) => {
  delete require.cache[path];
  const exported = await import(`${pathToFileURL(path).href}?config=${++imports}`);
  return exported.default;
};

const loaders: Record<string, Loader> = {
  ".ts": script,
  ".js": script,
  ".mjs": script,
  ".cjs": script,
  ".json": readJson,
  ".yaml": readYaml,
  ".yml": readYaml,
  noExt: readYaml,
};

/**
 * Reads the configuration: the named file, or the first of `searchPlaces` from `cwd` up to the folder of the nearest
 * package.json (only `cwd` where there is none), or the embedded default. Nothing is checked yet.
 * @throws {ModhostError} CONFIG_NOT_FOUND, CONFIG_UNREADABLE
 */
export async function loadConfig(options: LoadConfigOptions = {}): Promise<Config> {
  const cwd = resolve(options.cwd ?? process.cwd());
  const searched = options.search === false ? { file: undefined, values: {} } : undefined;
  const found =
    options.path === undefined
      ? (searched ?? (await search(cwd)))
      : await readNamed(resolve(cwd, options.path), options.text);
  return new Config({
    written: found?.values ?? (await embeddedDefault()),
    environment: environmentOptions(options.env ?? process.env),
    values: options.values ?? {},
    file: found?.file,
    isDefault: found === undefined,
    directory: found?.file === undefined ? cwd : dirname(found.file),
  });
}

interface Read {
  readonly file: string;
  readonly values: Record<string, unknown>;
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
    searchPlaces: [...searchPlaces],
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

/** A config file may give an object, a function that returns one, or a promise of either; an empty one sets nothing. */
async function resolveExport(result: { config: unknown; filepath: string; isEmpty?: boolean } | null) {
  let value: unknown = await result?.config;
  if (typeof value === "function") value = await value();
  if (value === null || (value === undefined && result?.isEmpty)) return {};
  if (isObject(value)) return value;
  const got = value === undefined ? "nothing" : Array.isArray(value) ? "a list" : `a ${typeof value}`;
  throw new Error(`it gives ${got}, but a config is an object, a function that returns one, or a promise of one`);
}

/** What a script threw gets its place added; messages about YAML and JSON carry theirs already. */
async function unreadable(file: string, error: unknown): Promise<ModhostError> {
  if (ModhostError.is(error)) return error;
  const place = await placeOf(file, error);
  const reason = place === undefined ? reasonOf(error) : `${reasonOf(error)} (${place})`;
  return new ModhostError("CONFIG_UNREADABLE", { path: file, reason }, { cause: error });
}

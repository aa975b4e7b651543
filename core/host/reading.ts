/** Loads the configuration of a host, and the log settings in it. */
import { statSync } from "node:fs";
import { resolve } from "node:path";
import { Config, configFrom, formatOf, loadConfig } from "../config/index.ts";
import type { EditedText } from "../operations/config_edit.ts";
import { ModhostError, reasonOf } from "../util/errors.ts";
import { createLog, type Log, type LogSettings } from "../util/log.ts";
import type { HostOptions } from "./types.ts";

/** Returns the folder from which relative paths of the host options are resolved. */
export function folderOf({ cwd }: HostOptions): string {
  return resolve(cwd ?? process.cwd());
}

/** Loads the configuration without checking it. */
export async function readConfig(options: HostOptions): Promise<Config> {
  const { config, configPath, search = true, env = process.env } = options;
  const cwd = folderOf(options);
  if (config instanceof Config) return config;
  if (config !== undefined && configPath === undefined) return configFrom({ ...config }, cwd);
  return loadConfig({ cwd, env, path: configPath, search, values: { ...config } });
}

/**
 * Returns the level and format from the configuration and `given`. Wrong values are ignored here:
 * the check of the configuration reports them with all others.
 */
export function logSettings(config: Config, given: LogSettings | undefined): LogSettings {
  const read = (name: string) => attempt(() => config.value(name));
  const configured = {
    level: read("log_level"),
    format: read("log_format"),
    destination: read("log_file"),
  } as LogSettings;
  const known = Object.entries(configured).filter(([, value]) => value !== undefined);
  return { ...Object.fromEntries(known), ...given };
}

function createLogIn(settings: LogSettings): Log {
  try {
    return createLog(settings);
  } catch (error) {
    const value = String(settings.destination);
    const allowed = `it has to be a file that can be written to: ${reasonOf(error)}`;
    throw new ModhostError("OPTION_INVALID", { name: "log_file", value, allowed }, { cause: error });
  }
}

/** Opens the log, which masks the values of secret options. */
export function openLog(config: Config, given: LogSettings | undefined): Log {
  const settings = logSettings(config, given);
  const log = createLogIn(settings);
  log.mask((text) => config.mask(text));
  return log;
}

/**
 * Loads the configuration again, for a running host.
 * @throws {ModhostError} CONFIG_FIXED if there is none to reload, CONFIG_NOT_FOUND,
 * CONFIG_UNREADABLE
 */
export async function readAgain(options: HostOptions): Promise<Config> {
  const { config, configPath, search = true } = options;
  const isRead = configPath !== undefined || (config === undefined && search);
  if (!isRead || config instanceof Config) throw new ModhostError("CONFIG_FIXED", {});
  return readConfig(options);
}

/**
 * Loads the configuration as if one of its files had this text; `file` is the config file.
 * @throws {ModhostError} CONFIG_FIXED without a file, CONFIG_NOT_EDITABLE for a program,
 * CONFIG_UNREADABLE, MODULES_LOCK_INVALID
 */
export async function readWith(options: HostOptions, file: string | undefined, edited: EditedText): Promise<Config> {
  const { config, search, env = process.env } = options;
  const { text } = edited;
  if (config instanceof Config) throw new ModhostError("CONFIG_FIXED", {});
  if (edited.file === "lock") {
    if (file === undefined && (config !== undefined || search === false)) throw new ModhostError("CONFIG_FIXED", {});
    return loadConfig({ cwd: folderOf(options), env, path: file, lock: text, values: { ...config } });
  }
  if (file === undefined) throw new ModhostError("CONFIG_FIXED", {});
  if (formatOf(file) === "script")
    throw new ModhostError("CONFIG_NOT_EDITABLE", { reason: "it is a program, and reading it would run it" });
  return loadConfig({ cwd: folderOf(options), env, path: file, text, values: { ...config } });
}

/**
 * Loads the configuration of a host that starts. The data folder need not exist yet.
 * @throws {ModhostError} CONFIG_NOT_FOUND, CONFIG_UNREADABLE, and OPTION_INVALID if the data folder
 * is a file
 */
export async function readFirst(options: HostOptions): Promise<Config> {
  const config = await readConfig(options);
  const value = dataFolder(config);
  if (statSync(value, { throwIfNoEntry: false })?.isDirectory() !== false) return config;
  const allowed = "that is a file: it must be a folder";
  throw new ModhostError("OPTION_INVALID", { name: "data_path", value, allowed });
}

/**
 * Returns the data folder; if the option is wrong, the folder of the config file, because the check
 * of the configuration reports the error.
 */
export function dataFolder(config: Config): string {
  return String(attempt(() => config.value("data_path")) ?? config.directory);
}

/**
 * Returns a period of the configuration in seconds; `fallback` if it is wrong, because the check of
 * the configuration reports the error.
 */
export function seconds(config: Config, option: string, fallback: number): number {
  return Number(attempt(() => config.value(option)) ?? fallback);
}

export function attempt<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}

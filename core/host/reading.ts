/** What a host is told: its configuration, and the settings of its log in it. */
import { resolve } from "node:path";
import { Config, configFrom, formatOf, loadConfig } from "../config/index.ts";
import { ModhostError, reasonOf } from "../util/errors.ts";
import { createLog, type Log, type LogSettings } from "../util/log.ts";
import type { HostOptions } from "./types.ts";

/** Relative paths that a host is given count from here. */
export function folderOf({ cwd }: HostOptions): string {
  return resolve(cwd ?? process.cwd());
}

/** Nothing is checked yet. */
export async function readConfig(options: HostOptions): Promise<Config> {
  const { config, configPath, search = true, env = process.env } = options;
  const cwd = folderOf(options);
  if (config instanceof Config) return config;
  if (config !== undefined && configPath === undefined) return configFrom({ ...config }, cwd);
  return loadConfig({ cwd, env, path: configPath, search, values: { ...config } });
}

/**
 * The level and the format that the configuration and `given` want. Wrong values are reported by the check of the
 * configuration, with all others.
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

/** Without the values of secret options. */
export function openLog(config: Config, given: LogSettings | undefined): Log {
  const settings = logSettings(config, given);
  const log = createLogIn(settings);
  log.mask((text) => config.mask(text));
  return log;
}

/**
 * The configuration as it is now, for a host that runs.
 * @throws {ModhostError} CONFIG_FIXED where there is none to read again, CONFIG_NOT_FOUND, CONFIG_UNREADABLE
 */
export async function readAgain(options: HostOptions): Promise<Config> {
  const { config, configPath, search = true } = options;
  const isRead = configPath !== undefined || (config === undefined && search);
  if (!isRead || config instanceof Config) throw new ModhostError("CONFIG_FIXED", {});
  return readConfig(options);
}

/**
 * The configuration as it would be with this text in the file `file`.
 * @throws {ModhostError} CONFIG_FIXED without a file, CONFIG_NOT_EDITABLE for a program, CONFIG_UNREADABLE
 */
export async function readWith(options: HostOptions, file: string | undefined, text: string): Promise<Config> {
  const { config, env = process.env } = options;
  if (file === undefined || config instanceof Config) throw new ModhostError("CONFIG_FIXED", {});
  if (formatOf(file) === "script")
    throw new ModhostError("CONFIG_NOT_EDITABLE", { reason: "it is a program, whose text would run" });
  return loadConfig({ cwd: folderOf(options), env, path: file, text, values: { ...config } });
}

/** Where the host keeps what it writes; the folder of the config file where the option is wrong, which its check reports. */
export function dataFolder(config: Config): string {
  return String(attempt(() => config.value("data_path")) ?? config.directory);
}

/** A period of the configuration, seconds; `fallback` where it is wrong, which its check reports. */
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

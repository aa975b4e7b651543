/** What a host is told: its configuration, and the settings of its log in it. */
import { resolve } from "node:path";
import { Config, configFrom, loadConfig } from "../config/index.ts";
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
 * The log as the configuration and `given` want it, without the values of secret options. Wrong values are reported by
 * the check of the configuration, with all others.
 */
export function openLog(config: Config, given: LogSettings | undefined): Log {
  const read = (name: string) => attempt(() => config.value(name));
  const configured = { level: read("log_level"), format: read("log_format") } as LogSettings;
  const known = Object.entries(configured).filter(([, value]) => value !== undefined);
  const log = createLog({ ...Object.fromEntries(known), ...given });
  log.mask((text) => config.mask(text));
  return log;
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

/** Arguments and options that the backup commands share. */
import { dirname, resolve } from "node:path";
import { type CommandContext, type CommandOption, UsageError } from "../../../../core/cli/index.ts";
import { type Config, loadConfig, ModhostError } from "../../../../core/index.ts";
import { type BackendSettings, isObjectStore, openBackend, readSecret } from "../../backends/open.ts";
import { options as declared } from "../../options.ts";
import { openRepository, type Repository } from "../../repository/repository.ts";

export const keyOption = {
  "key-file": {
    type: "string",
    value: "FILE",
    help: "File with the key for encryption; default: the option backup_key_file",
  },
} as const satisfies Record<string, CommandOption>;

/** Returns the destination and the key that the arguments name. A folder becomes absolute. */
export function named({ args, options, cwd }: CommandContext): BackendSettings {
  const [to, ...more] = args;
  if (more.length > 0) throw new UsageError(`Name one destination, not ${args.join(" and ")}`);
  const key = textOf(options, "key-file");
  return {
    ...(to === undefined ? {} : { to: isObjectStore(to) ? to : resolve(cwd, to) }),
    ...(key === undefined ? {} : { key_file: resolve(cwd, key) }),
  };
}

/** Opens the repository that the arguments name, or the one in the options. */
export async function openNamed(context: CommandContext): Promise<Repository> {
  const config = await configOf(context);
  config.declare(declared, "backup");
  const value = (name: keyof typeof declared) => config.value(name) as string | undefined;
  const settings: BackendSettings = {
    to: value("backup_to"),
    key_file: value("backup_key_file"),
    s3_endpoint: value("backup_s3_endpoint"),
    s3_region: value("backup_s3_region"),
    s3_key_id: value("backup_s3_key_id"),
    s3_secret: value("backup_s3_secret"),
    ...named(context),
  };
  return openRepository(await openBackend(settings, config.directory), { secret: await readSecret(settings) });
}

/**
 * Loads the configuration. If the named file does not exist, only the environment counts: the file
 * may exist only in the backup.
 */
async function configOf({ configPath: path, cwd, env, stderr }: CommandContext): Promise<Config> {
  try {
    return await loadConfig({ path, cwd, env });
  } catch (error) {
    if (path === undefined || !ModhostError.is(error) || error.code !== "CONFIG_NOT_FOUND") throw error;
    const file = resolve(cwd, path);
    stderr.write(`modhost: There is no config file ${file}: options come only from the environment\n`);
    return loadConfig({ search: false, cwd: dirname(file), env });
  }
}

/** @throws {UsageError} when the option has no value */
export function textOf(options: CommandContext["options"], name: string): string | undefined {
  const value = options[name];
  if (typeof value === "boolean") throw new UsageError(`--${name} needs a value`);
  return value;
}

/** Calls `work` with a signal that Ctrl+C and SIGTERM abort. */
export async function untilStopped<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const stop = new AbortController();
  const end = () => stop.abort(new Error("It was interrupted"));
  const signals = ["SIGINT", "SIGTERM"] as const;
  for (const signal of signals) process.on(signal, end);
  try {
    return await work(stop.signal);
  } finally {
    for (const signal of signals) process.off(signal, end);
  }
}

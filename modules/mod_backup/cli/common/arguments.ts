/** Arguments and options that the commands of backups share. */
import { resolve } from "node:path";
import { type CommandContext, type CommandOption, UsageError } from "../../../../core/cli/index.ts";
import { loadConfig } from "../../../../core/index.ts";
import { type BackendSettings, isObjectStore, openBackend, readSecret } from "../../backends/open.ts";
import { options as declared } from "../../options.ts";
import { openRepository, type Repository } from "../../repository/repository.ts";

export const keyOption = {
  "key-file": {
    type: "string",
    value: "FILE",
    help: "File whose content encrypts it; default: the option backup_key_file",
  },
} as const satisfies Record<string, CommandOption>;

/** The place and the key that the arguments name; a folder is absolute. */
export function named({ args, options, cwd }: CommandContext): BackendSettings {
  const [to, ...more] = args;
  if (more.length > 0) throw new UsageError(`One place is named, not ${args.join(" and ")}`);
  const key = textOf(options, "key-file");
  return {
    ...(to === undefined ? {} : { to: isObjectStore(to) ? to : resolve(cwd, to) }),
    ...(key === undefined ? {} : { key_file: resolve(cwd, key) }),
  };
}

/** The repository of the arguments, or else of the options. */
export async function openNamed(context: CommandContext): Promise<Repository> {
  const config = await loadConfig({ path: context.configPath, cwd: context.cwd, env: context.env });
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

/** @throws {UsageError} when the option was given without a value */
export function textOf(options: CommandContext["options"], name: string): string | undefined {
  const value = options[name];
  if (typeof value === "boolean") throw new UsageError(`--${name} needs a value`);
  return value;
}

/** Calls `work` with a signal that Ctrl+C and SIGTERM abort. */
export async function untilStopped<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const stop = new AbortController();
  const end = () => stop.abort(new Error("It was stopped before its end"));
  const signals = ["SIGINT", "SIGTERM"] as const;
  for (const signal of signals) process.on(signal, end);
  try {
    return await work(stop.signal);
  } finally {
    for (const signal of signals) process.off(signal, end);
  }
}

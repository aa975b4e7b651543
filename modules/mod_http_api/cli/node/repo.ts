/** Determines which repo a command uses. */
import { homedir } from "node:os";
import { join, resolve } from "node:path";
import type { CommandContext, Options } from "../../../../core/cli/index.ts";

/** The words in front of command names in usage texts. */
export const program = "modhost node";

export const repoOptions = {
  "repo-dir": { type: "string", value: "DIR", help: "Folder of the repo; default: $IPFS_PATH or ~/.ipfs" },
  config: { type: "string", short: "c", value: "DIR", help: "The same, as in go-ipfs" },
  data: { type: "string", value: "DIR", help: "Folder for blocks and metadata, instead of the repo" },
  debug: { type: "boolean", short: "D", help: "Log everything" },
} as const satisfies Options;

/** Options of every `modhost node` command. */
export const sharedOptions = {
  ...repoOptions,
  help: { type: "boolean", short: "h", help: "Print this" },
} as const satisfies Options;

type Place = Pick<CommandContext, "options" | "env" | "cwd">;

/** Absolute path of the repo folder. */
export function repoFolder({ options, env, cwd }: Place): string {
  const named = textOf(options["repo-dir"]) ?? textOf(options.config) ?? textOf(env.IPFS_PATH) ?? "~/.ipfs";
  return resolve(cwd, named.replace(/^~(?=$|\/)/, textOf(env.HOME) ?? homedir()));
}

/** Absolute path of the folder for blocks and metadata; undefined if they are in the repo. */
export function dataFolder({ options, cwd }: Omit<Place, "env">): string | undefined {
  const named = textOf(options.data);
  return named === undefined ? undefined : resolve(cwd, named);
}

/** The text of an option or variable; undefined if it is missing or empty. */
export function textOf(value: string | boolean | undefined): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

/** The files with the address of the daemon's API and a token for it, which are read without opening the repo. */
export const apiFiles = (repo: string): readonly string[] => [join(repo, "api"), join(repo, "api-token")];

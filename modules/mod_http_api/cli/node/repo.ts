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

/** Options that every `modhost node` command accepts. */
export const sharedOptions = {
  ...repoOptions,
  help: { type: "boolean", short: "h", help: "Print this" },
} as const satisfies Options;

type RepoContext = Pick<CommandContext, "options" | "env" | "cwd">;

/** Returns the absolute path of the repo folder. */
export function repoFolder({ options, env, cwd }: RepoContext): string {
  const named = textOf(options["repo-dir"]) ?? textOf(options.config) ?? textOf(env.IPFS_PATH) ?? "~/.ipfs";
  return resolve(cwd, named.replace(/^~(?=$|\/)/, textOf(env.HOME) ?? homedir()));
}

/**
 * Returns the absolute path of the folder for blocks and metadata; undefined if they are in the
 * repo.
 */
export function dataFolder({ options, cwd }: Omit<RepoContext, "env">): string | undefined {
  const named = textOf(options.data);
  return named === undefined ? undefined : resolve(cwd, named);
}

/** Returns the text of an option or variable; undefined if it is missing or empty. */
export function textOf(value: string | boolean | undefined): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

/**
 * Returns the files that hold the address of the daemon's API and a token for it. Clients read them
 * without opening the repo.
 */
export const apiFiles = (repo: string): readonly string[] => [join(repo, "api"), join(repo, "api-token")];

/** The repo of the installation that `modhost doctor` inspects. */
import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { inspectRepo, isRepo, type RepoInspection } from "modhost/node";
import type { Installation } from "../../../../core/cli/index.ts";

/**
 * Resolves to undefined if there is no repo, or if its config is unreadable, which other checks
 * report.
 */
export async function inspectedRepo(installation: Installation): Promise<RepoInspection | undefined> {
  const repo = repoOf(installation);
  if (!existsSync(repo) || !(await isRepo(repo))) return undefined;
  return inspectRepo(repo, folderOf(installation, "node_data")).catch(() => undefined);
}

export function repoOf(installation: Installation): string {
  return folderOf(installation, "node_repo") ?? join(installation.data, "repo");
}

function folderOf({ config, data }: Installation, option: string): string | undefined {
  const named = config?.raw(option);
  return typeof named === "string" ? resolve(config?.directory ?? data, named) : undefined;
}

/** The repo of an installation that `modhost doctor` looks at. */
import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { examineRepo, isRepo, type RepoExamined } from "modhost/node";
import type { Installation } from "../../../../core/cli/index.ts";

/** Undefined where there is no repo, or its config cannot be read, which other checks tell. */
export async function examined(installation: Installation): Promise<RepoExamined | undefined> {
  const repo = repoOf(installation);
  if (!existsSync(repo) || !(await isRepo(repo))) return undefined;
  return examineRepo(repo, folderOf(installation, "node_data")).catch(() => undefined);
}

export function repoOf(installation: Installation): string {
  return folderOf(installation, "node_repo") ?? join(installation.data, "repo");
}

function folderOf({ config, data }: Installation, option: string): string | undefined {
  const named = config?.raw(option);
  return typeof named === "string" ? resolve(config?.directory ?? data, named) : undefined;
}

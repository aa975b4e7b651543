/** Checks of `modhost doctor` on the repo of a node. */
import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { isRepo, lockHolder, versionFacts } from "modhost/node";
import { type Check, type Installation, problem, warning } from "../../../../core/cli/index.ts";

export const repoChecks: readonly Check[] = [
  {
    name: "repo",
    help: "The repo of the node is of the version that this program reads",
    async run(installation) {
      const repo = repoOf(installation);
      if (!existsSync(repo) || !(await isRepo(repo))) return [];
      const found = readFileSync(join(repo, "version"), "utf8").trim();
      const { repo: wanted } = versionFacts();
      if (found === wanted) return [];
      const remedy =
        Number(found) < Number(wanted)
          ? "migrate it with the program that made it"
          : "use the version of modhost that made it";
      return [problem(`The repo ${repo} has version ${found}, and this program reads ${wanted}`, remedy)];
    },
  },
  {
    name: "repo lock",
    help: "Nobody but the server that runs here has the repo open",
    async run(installation) {
      const repo = repoOf(installation);
      const { running } = installation;
      const holder = existsSync(repo) ? await lockHolder(repo) : undefined;
      if (holder === undefined || (running !== undefined && holder.includes(`process ${running.pid}`))) return [];
      const remedy = "stop that process; if it has ended already, the next start takes the lock by itself";
      return [
        warning(`The repo ${repo} is held by ${holder}, which is no server that this configuration finds`, remedy),
      ];
    },
  },
];

function repoOf({ config, data }: Installation): string {
  const named = config?.raw("node_repo");
  return typeof named === "string" ? resolve(config?.directory ?? data, named) : join(data, "repo");
}

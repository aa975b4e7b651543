/** Checks of `modhost doctor` on the repo of a node. */
import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { examineRepo, isRepo, type RepoExamined, versionFacts } from "modhost/node";
import { type Check, type Installation, problem, warning } from "../../../../core/cli/index.ts";

/** Milliseconds: whoever has a lease renews it every few seconds, and the clocks of hosts differ. */
const MAX_UNRENEWED_MS = 120_000;

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
      const { running, system } = installation;
      const holder = (await examined(installation))?.holder;
      if (holder === undefined || (holder.runs !== false && holder.pid === running?.pid)) return [];
      const { text, runs, renewed } = holder;
      const since = new Date(renewed).toISOString();
      const isOld = system.now() - renewed > MAX_UNRENEWED_MS;
      if (runs === false || (runs === undefined && isOld)) {
        const end = runs === false ? "has ended without giving it back" : "has not renewed it since";
        const remedy = "the next start takes it by itself; the log of that process may tell why it ended";
        return [warning(`The lease of the repo ${repo} is of ${text}, which ${end} (${since})`, remedy)];
      }
      const remedy = "stop that process, or set node_repo to another folder";
      return [warning(`The repo ${repo} is held by ${text}, which is no server that this configuration finds`, remedy)];
    },
  },
  {
    name: "metadata",
    help: "The pins, files and names of the node are there, and so is a copy of them that is whole",
    async run(installation) {
      const { metadata } = (await examined(installation)) ?? {};
      if (metadata === undefined) return [];
      const { path, isThere, copy } = metadata;
      const { made, fault } = copy;
      if (!isThere && made !== undefined && installation.running === undefined) {
        const remedy = `put back a backup of it, or start once with node_lost_metadata: restore, which takes the copy of ${made}`;
        return [problem(`${path} is lost: pins, files and names of the node are not there`, remedy)];
      }
      if (fault !== undefined) {
        const remedy = "the node writes it anew after the next change, such as a pin; look for faults of the disk";
        return [warning(`${copy.path} could not be put back if the metadata were lost: ${fault}`, remedy)];
      }
      if (!isThere || made !== undefined || installation.running !== undefined) return [];
      return [
        warning(`There is no copy of the metadata in ${copy.path}`, "start the server: it makes one within a minute"),
      ];
    },
  },
  {
    name: "mounts",
    help: "Where folders for ipfs mount are there or configured, this user can mount",
    async run(installation) {
      const { mounts = [], mountFault } = (await examined(installation)) ?? {};
      if (mountFault === undefined) return [];
      const folders = mounts.join(" and ");
      const remedy =
        "modprobe fuse, run the server as root, in a container with --device /dev/fuse; or leave mount alone";
      return [warning(`Nothing can be mounted on ${folders}: ${mountFault}`, remedy)];
    },
  },
];

/** Undefined where there is no repo, or its config cannot be read, which other checks tell. */
async function examined(installation: Installation): Promise<RepoExamined | undefined> {
  const repo = repoOf(installation);
  if (!existsSync(repo) || !(await isRepo(repo))) return undefined;
  return examineRepo(repo, folderOf(installation, "node_data")).catch(() => undefined);
}

function repoOf(installation: Installation): string {
  return folderOf(installation, "node_repo") ?? join(installation.data, "repo");
}

function folderOf({ config, data }: Installation, option: string): string | undefined {
  const named = config?.raw(option);
  return typeof named === "string" ? resolve(config?.directory ?? data, named) : undefined;
}

/** Checks of `modhost doctor` on the repo of a node. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { halfCopied, isRepo, versionFacts } from "modhost/node";
import { type Check, existing, problem, unfoundServer, warning } from "../../../../core/cli/index.ts";
import { size_text } from "../../../../core/net/http.ts";
import { inspectedRepo, repoOf } from "./installation.ts";
import { checksOfStore, storeSettings } from "./store_checks.ts";

/**
 * Milliseconds without a renewal after which a lease counts as abandoned. Owners renew every few
 * seconds; the margin allows for clocks that differ between hosts.
 */
const MAX_UNRENEWED_MS = 120_000;
/** Free bytes below which the file system of the blocks counts as nearly full. */
const LOW_FREE_BYTES = 1_000_000_000;

export const repoChecks: readonly Check[] = [
  {
    name: "repo",
    help: "The node's repo has the version that this program reads",
    async run(installation) {
      const repo = repoOf(installation);
      const copied = await halfCopied(repo);
      if (copied !== undefined) {
        const remedy = "run the same modhost node migrate command again to continue, or remove the folder";
        return [problem(`The repo ${repo} is an incomplete copy of ${copied}`, remedy)];
      }
      if (!existsSync(repo) || !(await isRepo(repo))) return [];
      const found = readFileSync(join(repo, "version"), "utf8").trim();
      const { repo: wanted } = versionFacts();
      if (found === wanted) return [];
      const remedy =
        Number(found) < Number(wanted)
          ? "migrate it with the program that created it"
          : "use the version of modhost that created it";
      return [problem(`The repo ${repo} has version ${found}, and this program reads ${wanted}`, remedy)];
    },
  },
  {
    name: "repo lock",
    help: "Only the server that runs here has the repo open",
    async run(installation) {
      const repo = repoOf(installation);
      const { running, system } = installation;
      const holder = (await inspectedRepo(installation))?.holder;
      if (holder === undefined || (holder.runs !== false && holder.pid === running?.pid)) return [];
      const { text, runs, renewed } = holder;
      const since = new Date(renewed).toISOString();
      const isOld = system.now() - renewed > MAX_UNRENEWED_MS;
      if (runs === false || (runs === undefined && isOld)) {
        const end = runs === false ? "has ended without releasing it" : "has not renewed it since";
        const remedy = "the next start takes it over by itself; the log of that process may show why it ended";
        return [warning(`The lease of the repo ${repo} belongs to ${text}, which ${end} (${since})`, remedy)];
      }
      const remedy = `stop that process, or set node_repo to another folder${unfoundServer(installation.config)}`;
      return [warning(`The repo ${repo} is locked by ${text}, which is not a server of this configuration`, remedy)];
    },
  },
  {
    name: "metadata",
    help: "The node's pins, files and names exist, and there is an intact copy of them",
    async run(installation) {
      const { metadata } = (await inspectedRepo(installation)) ?? {};
      if (metadata === undefined) return [];
      // Hosts of a shared store keep no copies.
      if (storeSettings(installation) !== undefined) return [];
      const { path, exists, copy } = metadata;
      const { made, fault } = copy;
      if (!exists && made !== undefined && installation.running === undefined) {
        const remedy = `restore a backup of it, or start once with node_lost_metadata: restore, which uses the copy of ${made}`;
        return [problem(`${path} is lost: it contained the node's pins, files and names`, remedy)];
      }
      if (fault !== undefined) {
        const remedy = "the node writes it again after the next change, such as a pin; check the disk for faults";
        return [warning(`${copy.path} could not be restored if the metadata were lost: ${fault}`, remedy)];
      }
      if (!exists || made !== undefined || installation.running !== undefined) return [];
      return [
        warning(`There is no copy of the metadata in ${copy.path}`, "start the server: it creates one within a minute"),
      ];
    },
  },
  {
    name: "repo space",
    help: "There is room for blocks, and for a copy of the metadata",
    async run(installation) {
      const { blocks, metadata } = (await inspectedRepo(installation)) ?? {};
      if (blocks === undefined || metadata === undefined) return [];
      const room = (path: string) => installation.system.space(existing(path))?.free ?? Number.POSITIVE_INFINITY;
      const forBlocks = room(blocks.path);
      const forCopy = room(metadata.path);
      return [
        ...(forBlocks < LOW_FREE_BYTES
          ? [warning(`Only ${size_text(forBlocks)} are free at ${blocks.path}`, "make room: modhost rpc repo gc")]
          : []),
        ...(forCopy < metadata.bytes
          ? [
              warning(
                `${metadata.path} has ${size_text(metadata.bytes)}, but only ${size_text(forCopy)} are free for the copy next to it`,
                "make room: without a copy, pins, files and names cannot be restored",
              ),
            ]
          : []),
      ];
    },
  },
  {
    name: "damaged blocks",
    help: "No parts of segments were set aside because they are damaged",
    async run(installation) {
      const { blocks } = (await inspectedRepo(installation)) ?? {};
      if (blocks === undefined || blocks.setAside.files === 0) return [];
      const { path, setAside } = blocks;
      return [
        warning(
          `${setAside.files} damaged parts of segments (${size_text(setAside.bytes)}) were set aside in ${join(path, "lost+found")}`,
          "see the log for the cause; modhost rpc pin verify lists the missing blocks: fetch or add them again, then remove that folder",
        ),
      ];
    },
  },
  {
    name: "mounts",
    help: "If folders for ipfs mount exist or are configured, this user can mount",
    async run(installation) {
      const { mounts = [], mountFault } = (await inspectedRepo(installation)) ?? {};
      if (mountFault === undefined) return [];
      const folders = mounts.join(" and ");
      const remedy =
        "run modprobe fuse, or run the server as root, in a container with --device /dev/fuse; or do without mount";
      return [warning(`Nothing can be mounted on ${folders}: ${mountFault}`, remedy)];
    },
  },
  ...checksOfStore(),
];

/** Figures and upkeep of the repo. */

import type { LowLevelNode as Node } from "../../mod_node/index.ts";
import { sizeText } from "../../mod_node/util/size.ts";
import { columns } from "../rpc/columns.ts";
import { type Commands, defineCommand, defineGroup, value } from "../rpc/command.ts";
import { fields } from "../rpc/shape.ts";

/** What there is where the configuration sets no limit. */
const unlimited = 2n ** 64n - 1n;

const sizes = fields("SizeStat", { RepoSize: "uint64", StorageMax: "uint64" });

async function figures(node: Node, sizeOnly: boolean) {
  const { blocks, bytes, storageMax = unlimited } = await node.stat();
  const SizeStat = { RepoSize: bytes, StorageMax: storageMax };
  const whole = { NumObjects: blocks, RepoPath: node.repo.path, Version: `fs-repo@${node.repo.version}` };
  return { ...SizeStat, ...(sizeOnly ? { NumObjects: 0, RepoPath: "", Version: "" } : whole), SizeStat };
}

const stat = defineCommand({
  help: "Tells how much the repo holds.",
  options: {
    "size-only": { type: "bool", aliases: ["s"], help: "Only RepoSize and StorageMax." },
    human: { type: "bool", aliases: ["H"], help: "Print sizes for people: 1K, 234M, 2G." },
  },
  returns: value(
    fields("Stat", {
      RepoSize: "uint64",
      StorageMax: "uint64",
      NumObjects: "uint64",
      RepoPath: "string",
      Version: "string",
      SizeStat: sizes,
    }),
  ),
  run: ({ lowLevel: node, options }) => figures(node, options["size-only"] === true),
  text({ RepoSize, StorageMax, NumObjects, RepoPath, Version }, { options }) {
    const size = options.human === true ? sizeText : String;
    const lines = [
      ["RepoSize:", size(RepoSize)],
      ["StorageMax:", size(StorageMax)],
    ];
    if (options["size-only"] === true) return columns(lines, 0);
    const whole = [["NumObjects:", String(NumObjects)], ...lines, ["RepoPath:", RepoPath], ["Version:", Version]];
    return columns(whole, 0);
  },
});

export const commands = {
  repo: defineGroup({ help: "Look after the repo." }),
  "repo/stat": stat,
  "stats/repo": stat,
  "repo/version": defineCommand({
    help: "Tells the version of the repo.",
    options: { quiet: { type: "bool", aliases: ["q"], help: "Print less." } },
    returns: value(fields("RepoVersion", { Version: "string" })),
    run: ({ lowLevel: node }) => ({ Version: node.repo.version }),
    text: ({ Version }, { options }) =>
      options.quiet === true ? `fs-repo@${Version}\n` : `ipfs repo version fs-repo@${Version}\n`,
  }),
  "repo/fsck": defineCommand({
    help: "Removes lock files that dead processes have left.",
    returns: value(fields("MessageOutput", { Message: "string" })),
    async run({ lowLevel: node }) {
      const removed = await node.repo.clean();
      return { Message: removed.length === 0 ? "No stale lock files.\n" : `Removed ${removed.join(", ")}.\n` };
    },
    text: ({ Message }) => Message,
  }),
} satisfies Commands;

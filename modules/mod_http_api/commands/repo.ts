/** `repo`: statistics and maintenance of the repo. */

import { type RepoVerifyOptions, sizeText } from "modhost/node";
import { columns } from "../rpc/columns.ts";
import { type AnyCall, type Commands, defineGroup, readCommand, stream, value, writeCommand } from "../rpc/command.ts";
import { fields, nullable, type ValueOf } from "../rpc/shape.ts";
import { human } from "./shapes.ts";

const sizes = fields("SizeStat", { RepoSize: "uint64", StorageMax: "uint64" });

const statFields = {
  RepoSize: "uint64",
  StorageMax: "uint64",
  NumObjects: "uint64",
  RepoPath: "string",
  Version: "string",
} as const;
type Stat = ValueOf<typeof statKubo043>;
const statKubo043 = fields("Stat", statFields);

const showing = {
  help: "Shows the size of the repo.",
  options: {
    "size-only": { type: "bool", aliases: ["s"], help: "Show only RepoSize and StorageMax." },
    human: { ...human, aliases: ["H"] },
  },
  text({ RepoSize, StorageMax, NumObjects, RepoPath, Version }: Stat, { options }: Pick<AnyCall, "options">) {
    const size = options.human === true ? sizeText : String;
    const lines = [
      ["RepoSize:", size(RepoSize)],
      ["StorageMax:", size(StorageMax)],
    ];
    if (options["size-only"] === true) return columns(lines, 0);
    const whole = [["NumObjects:", String(NumObjects)], ...lines, ["RepoPath:", RepoPath], ["Version:", Version]];
    return columns(whole, 0);
  },
} as const;

async function sizesOf({ node, options, level }: Pick<AnyCall, "node" | "options" | "level">): Promise<Stat> {
  const sizeOnly = options["size-only"] === true;
  const { repoSize, storageMax, numObjects, repoPath, version } = await node.repo.stat({ sizeOnly });
  return {
    RepoSize: repoSize,
    StorageMax: storageMax,
    NumObjects: numObjects,
    RepoPath: repoPath,
    Version: version === "" ? "" : `fs-repo@${level.repo}`,
  };
}

const stat = readCommand({
  ...showing,
  returns: value(fields("Stat", { ...statFields, SizeStat: sizes })),
  async run(call) {
    const { RepoSize, StorageMax, ...others } = await sizesOf(call);
    const SizeStat = { RepoSize, StorageMax };
    return { ...SizeStat, ...others, SizeStat };
  },
});

const statCommandKubo043 = readCommand({ ...showing, returns: value(statKubo043), run: sizesOf });

const verifyProgress = fields("VerifyProgress", { Msg: "string", Progress: "int" });

const verifying = {
  returns: stream(verifyProgress),
  text: ({ Msg, Progress }: ValueOf<typeof verifyProgress>) =>
    Msg === "" ? `${Progress} blocks processed.\r` : `${Msg}\n`,
} as const;

async function* verified({ node, signal }: Pick<AnyCall, "node" | "signal">, how: RepoVerifyOptions = {}) {
  for await (const { msg, progress } of node.repo.verify({ ...how, signal })) yield { Msg: msg, Progress: progress };
}

export const commands = {
  repo: defineGroup({ help: "Manage the repo." }),
  "repo/stat": stat,
  "stats/repo": stat,
  "repo/version": readCommand({
    help: "Shows the version of the repo.",
    options: { quiet: { type: "bool", aliases: ["q"], help: "Print less." } },
    returns: value(fields("RepoVersion", { Version: "string" })),
    run: ({ level }) => ({ Version: level.repo }),
    text: ({ Version }, { options }) =>
      options.quiet === true ? `fs-repo@${Version}\n` : `ipfs repo version fs-repo@${Version}\n`,
  }),
  "repo/fsck": writeCommand({
    help: "Removes lock files that dead processes left behind.",
    returns: value(fields("MessageOutput", { Message: "string" })),
    async run({ node }) {
      const removed = await node.repo.fsck();
      return { Message: removed.length === 0 ? "No stale lock files.\n" : `Removed ${removed.join(", ")}.\n` };
    },
    text: ({ Message }) => Message,
  }),
  "repo/gc": writeCommand({
    help: "Removes all blocks that are not pinned or otherwise in use.",
    options: {
      "stream-errors": { type: "bool", help: "Report errors among the results." },
      quiet: { type: "bool", aliases: ["q"], help: "Print CIDs only." },
      silent: {
        type: "bool",
        since: "0.43",
        help: "List no removed blocks; with stream-errors, everything is listed.",
      },
    },
    returns: stream(fields("GcResult", { Key: nullable("link"), "Error?": "string" })),
    async *run({ node, options: { "stream-errors": streamErrors, silent }, level, signal }) {
      const asRaw = level.storedBlocks === "by multihash";
      for await (const { cid, err } of node.repo.gc({ streamErrors, asRaw, signal })) {
        if (silent === true && streamErrors !== true) continue;
        yield { Key: cid, ...(err !== null && { Error: err.message }) };
      }
    },
    text({ Key, Error: failed }, { options }) {
      if (failed !== undefined) return `Error: ${failed}\n`;
      return options.quiet === true ? `${Key}\n` : `removed ${Key}\n`;
    },
  }),
  "repo/verify": readCommand({
    ...verifying,
    help: "Reads every block and checks it against its CID.",
    run: (call) => verified(call),
  }),
} satisfies Commands;

export const kubo043 = {
  "repo/stat": statCommandKubo043,
  "stats/repo": statCommandKubo043,
  "repo/verify": writeCommand({
    ...verifying,
    help: "Reads every block and checks it against its CID. Removes corrupt blocks, or fetches them again.",
    options: {
      drop: { type: "bool", help: "Remove corrupt blocks." },
      heal: { type: "bool", help: "Remove corrupt blocks, and fetch them again from peers." },
      "heal-timeout": { type: "string", default: "30s", help: "Timeout for fetching each of them; 0 for no limit." },
    },
    run(call) {
      const { drop, heal, "heal-timeout": healTimeout } = call.options;
      return verified(call, { drop, heal, healTimeout, asRaw: call.level.storedBlocks === "by multihash" });
    },
  }),
} satisfies Commands;

/** `mount`: mounts the node as folders of this machine. */
import { failure } from "modhost/node";
import { type Commands, type Option, value, writeCommand } from "../rpc/command.ts";
import { fields } from "../rpc/shape.ts";

const mountFolder = (what: string, ...aliases: readonly string[]) =>
  ({
    type: "string",
    aliases,
    help: `Folder where ${what} are mounted; by default the one in the config.`,
  }) as const satisfies Option;

export const commands = {
  mount: writeCommand({
    help: "Mounts the node as folders of this machine.",
    options: {
      "ipfs-path": mountFolder("contents", "f", "store-path"),
      "ipns-path": mountFolder("names", "n", "name-path"),
      "mfs-path": {
        type: "string",
        aliases: ["m"],
        since: "0.43",
        help: "Always fails, because the namespace of `files` cannot be mounted; use the `files` commands instead.",
      },
    },
    returns: value(
      fields("Config", { IPFS: "string", IPNS: "string", FuseAllowOther: "bool", STORE: "string", NAME: "string" }),
    ),
    async run({ node, level, options: { "ipfs-path": ipfsPath, "ipns-path": ipnsPath, "mfs-path": mfsPath } }) {
      if (mfsPath !== undefined)
        throw failure("NOT_SUPPORTED", { reason: "mfs-path: the namespace of `files` cannot be mounted" });
      const { sharding, importDefaults, joinsLeaf, maxChunk } = level;
      const how = { sharding, importDefaults, joinsLeaf, maxChunk };
      const { ipfs, ipns, fuseAllowOther, store, name } = await node.mount({ ipfsPath, ipnsPath, ...how });
      return { IPFS: ipfs, IPNS: ipns, FuseAllowOther: fuseAllowOther, STORE: store, NAME: name };
    },
    text: ({ IPFS, IPNS }) => `IPFS mounted at: ${IPFS}\nIPNS mounted at: ${IPNS}\n`,
  }),
} satisfies Commands;

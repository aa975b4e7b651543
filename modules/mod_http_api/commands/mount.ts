/** Mounting the node as folders of this machine. */
import { type Commands, type Option, value, writeCommand } from "../rpc/command.ts";
import { fields } from "../rpc/shape.ts";

const place = (what: string, ...aliases: readonly string[]) =>
  ({
    type: "string",
    aliases,
    help: `Folder where ${what} are mounted; by default what the config says.`,
  }) as const satisfies Option;

export const commands = {
  mount: writeCommand({
    help: "Mounts the node as folders of this machine.",
    options: { "ipfs-path": place("contents", "f", "store-path"), "ipns-path": place("names", "n", "name-path") },
    returns: value(
      fields("Config", { IPFS: "string", IPNS: "string", FuseAllowOther: "bool", STORE: "string", NAME: "string" }),
    ),
    async run({ node, options: { "ipfs-path": ipfsPath, "ipns-path": ipnsPath } }) {
      const { ipfs, ipns, fuseAllowOther, store, name } = await node.mount({ ipfsPath, ipnsPath });
      return { IPFS: ipfs, IPNS: ipns, FuseAllowOther: fuseAllowOther, STORE: store, NAME: name };
    },
    text: ({ IPFS, IPNS }) => `IPFS mounted at: ${IPFS}\nIPNS mounted at: ${IPNS}\n`,
  }),
} satisfies Commands;

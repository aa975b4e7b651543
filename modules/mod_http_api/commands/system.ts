/** What reaches out of the node into the system that it runs on. */
import { bytes, type Commands, defineCommand, type Option, raw, value } from "../rpc/command.ts";
import { ownPackage } from "../rpc/packages.ts";
import { fields } from "../rpc/shape.ts";
import { versionFacts } from "../rpc/version.ts";

const place = (what: string, ...aliases: readonly string[]) =>
  ({
    type: "string",
    aliases,
    help: `Folder where ${what} are mounted; by default what the config says.`,
  }) as const satisfies Option;

async function howToUpdate(): Promise<Uint8Array> {
  const { name, version } = await ownPackage();
  const { Version, Repo, Golang } = versionFacts();
  return Buffer.from(
    `${name} ${version}: API ${Version}, repo ${Repo}, ${Golang}\n` +
      `Updates come through npm: \`npm view ${name} versions\` lists them, \`npm install ${name}@VERSION\` installs ` +
      "one (with --global where it was installed so). The host runs it from its next start on.\n",
  );
}

export const commands = {
  mount: defineCommand({
    help: "Mounts the node as folders.",
    options: { "ipfs-path": place("contents", "f", "store-path"), "ipns-path": place("names", "n", "name-path") },
    returns: value(
      fields("Config", { IPFS: "string", IPNS: "string", FuseAllowOther: "bool", STORE: "string", NAME: "string" }),
    ),
    async run({ options, lowLevel: node }) {
      await node.network();
      const { ipfs, ipns } = await node.mounts.mount({ ipfs: options["ipfs-path"], ipns: options["ipns-path"] });
      // The last is false in the reference whatever the config says.
      return { IPFS: ipfs, IPNS: ipns, FuseAllowOther: false, STORE: ipfs, NAME: ipns };
    },
    text: ({ IPFS, IPNS }) => `IPFS mounted at: ${IPFS}\nIPNS mounted at: ${IPNS}\n`,
  }),
  update: defineCommand({
    help: "Tells how updates are had, and which version this is.",
    arguments: [{ name: "args", variadic: true, help: "Of no effect here." }],
    returns: raw,
    run: async () => bytes(await howToUpdate()),
  }),
} satisfies Commands;

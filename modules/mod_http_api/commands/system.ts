/** What reaches out of the node into the system that it runs on. */
import { stat } from "node:fs/promises";
import { bytes, type Commands, defineCommand, type Option, raw, value } from "../command.ts";
import { failure, NodeError } from "../node/errors.ts";
import { ownPackage } from "../packages.ts";
import { fields } from "../shape.ts";
import { versionFacts } from "../version.ts";

const place = (what: string, ...aliases: readonly string[]) =>
  ({
    type: "string",
    aliases,
    help: `Folder where ${what} are mounted; by default what the config says.`,
  }) as const satisfies Option;

async function requireFolder(path: string): Promise<void> {
  const found = await stat(path).catch((error: NodeJS.ErrnoException) => error.code);
  if (found === "ENOENT") throw new NodeError(`mountpoint does not exist: ${path}`);
  if (typeof found !== "object" || !found.isDirectory()) {
    throw new NodeError(`fuse failed to access mountpoint ${path}`);
  }
}

async function* howToUpdate(): AsyncGenerator<Uint8Array> {
  const { name, version } = await ownPackage();
  const { Version, Repo, Golang } = versionFacts();
  yield Buffer.from(
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
    async run({ options, node }): Promise<never> {
      const { config } = node.repo;
      if (node.offline) throw failure("OFFLINE_COMMAND");
      await requireFolder(options["ipfs-path"] ?? config.value("Mounts.IPFS"));
      await requireFolder(options["ipns-path"] ?? config.value("Mounts.IPNS"));
      throw failure("NOT_YET", { command: "mount" });
    },
  }),
  update: defineCommand({
    help: "Tells how updates are had, and which version this is.",
    arguments: [{ name: "args", variadic: true, help: "Of no effect here." }],
    returns: raw,
    run: () => bytes(howToUpdate()),
  }),
} satisfies Commands;

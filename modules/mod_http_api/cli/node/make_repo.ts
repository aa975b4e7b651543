/** Creates a repo and prints its progress as go-ipfs does. */
import { readFile, writeFile } from "node:fs/promises";
import { resolve } from "node:path";
import {
  createNode,
  DEFAULT_RSA_BITS,
  failure,
  generateKey,
  type IdentityConfig,
  identityOf,
  isProfile,
  isRepo,
  NodeError,
} from "modhost/node";
import { type CommandContext, UsageError } from "../../../../core/cli/index.ts";
import { levelOf } from "./level.ts";
import { dataFolder, repoFolder } from "./repo.ts";

export interface NewRepo {
  /** Path of the config file to start from. */
  readonly document?: string | undefined;
  readonly profile?: string | undefined;
  readonly algorithm?: string | undefined;
  readonly bits?: string | undefined;
}

/** Creates the repo that the context names and prints each step. @throws NodeError */
export async function makeRepo(context: CommandContext, wanted: NewRepo): Promise<void> {
  const { stdout, cwd } = context;
  const { profile } = wanted;
  const repo = repoFolder(context);
  if (await isRepo(repo)) {
    throw failure("REPO_EXISTS", {
      reason: "ipfs configuration file already exists!\nReinitializing would overwrite your keys.\n",
    });
  }
  const unknown = profile?.split(",").find((name) => name !== "" && !isProfile(name));
  if (unknown !== undefined) throw new NodeError("CONFIG_PROFILE_UNKNOWN", `invalid configuration profile: ${unknown}`);
  const document = wanted.document === undefined ? undefined : await readFile(resolve(cwd, wanted.document), "utf8");
  const identity = document === undefined ? await makeIdentity(context, wanted) : undefined;
  stdout.write(`initializing IPFS node at ${repo}\n`);
  const made = { document, identity, profile: profile ?? "" };
  const node = await createNode({ repo, data: dataFolder(context), offline: true, ...made });
  if (document === undefined && (await levelOf(context)) === "0.43") {
    await node.lowLevel.repo.config.edit(withoutOldKeys);
  }
  await node.close();
}

/**
 * Keys of go-ipfs 0.9, by section, that keep Kubo 0.43 from starting. Without them, the defaults
 * apply.
 */
const oldKeys = {
  Experimental: ["AcceleratedDHTClient"],
  Provider: ["Strategy"],
  Reprovider: ["Interval", "Strategy"],
} as const;

async function withoutOldKeys(file: string): Promise<void> {
  const config = JSON.parse(await readFile(file, "utf8"));
  for (const [section, keys] of Object.entries(oldKeys)) for (const key of keys) delete config[section]?.[key];
  await writeFile(file, JSON.stringify(config));
}

async function makeIdentity(
  { stdout }: CommandContext,
  { algorithm: type = "ed25519", bits }: NewRepo,
): Promise<IdentityConfig> {
  const isRsa = type.toLowerCase() === "rsa";
  if (bits !== undefined && !isRsa) {
    throw failure("OPTION_CONFLICT", {
      reason: `number of key bits does not apply when using ${type.toLowerCase()} keys`,
    });
  }
  if (bits !== undefined && !/^\d+$/.test(bits)) throw new UsageError(`--bits takes a number, not ${bits}`);
  const size = Number(bits ?? DEFAULT_RSA_BITS);
  if (isRsa || type.toLowerCase() === "ed25519") {
    stdout.write(`generating ${isRsa ? `${size}-bit ` : ""}${type.toUpperCase()} keypair...`);
  }
  const identity = identityOf(await generateKey({ type, size }));
  stdout.write(`done\npeer identity: ${identity.PeerID}\n`);
  return identity;
}

/** Folders and configuration files for tests of the repo. */
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { ConfigFile } from "#node/storage/repo/config.ts";
import type { JsonObject } from "#node/storage/repo/json.ts";
import { treeOf } from "#node/storage/repo/json_tree.ts";
import { decodeConfig, initialConfig } from "#node/storage/repo/schema.ts";

/** Creates an empty folder, which is removed after the test. */
export async function emptyFolder(test: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "modhost-repo-"));
  test.after(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

export const secretKey = "the private key";

/** The configuration file of a new repo, with an identity that cannot be read. */
export async function newConfig(test: TestContext): Promise<{ config: ConfigFile; folder: string }> {
  const folder = await emptyFolder(test);
  const document = decodeConfig({ ...initialConfig(), Identity: { PeerID: "the peer id", PrivKey: secretKey } });
  await ConfigFile.create(folder, treeOf(document));
  return { config: await ConfigFile.open(folder), folder };
}

export async function documentIn(folder: string): Promise<JsonObject> {
  return JSON.parse(await readFile(join(folder, "config"), "utf8"));
}

/** Changes the file without the knowledge of the program that has it open. */
export async function amend(folder: string, change: JsonObject): Promise<void> {
  await writeFile(join(folder, "config"), JSON.stringify({ ...(await documentIn(folder)), ...change }));
}

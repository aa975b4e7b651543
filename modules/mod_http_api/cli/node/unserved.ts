/** Runs a command without a daemon. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createNode, isRepo } from "modhost/node";
import { type CommandContext, callRpc, serverWithin } from "../../../../core/cli/index.ts";
import { createHost } from "../../../../core/index.ts";
import { levelOf } from "./level.ts";
import { program } from "./repo.ts";
import { serving } from "./serving.ts";

/** Commands that need no repo. */
const repoless: ReadonlySet<string | undefined> = new Set(["version", "commands", "cid"]);

export interface Stores {
  readonly repo: string;
  readonly data: string | undefined;
}

/** Runs the command in this process, opening the repo meanwhile. Resolves to the exit code. @throws as `call` */
export async function callUnserved(context: CommandContext, words: readonly string[], stores: Stores): Promise<number> {
  if (!repoless.has(words[0]) || (await isRepo(stores.repo))) return callOn(context, words, stores);
  const repo = await mkdtemp(join(tmpdir(), "modhost-node-"));
  try {
    return await callOn(context, words, { repo, init: true });
  } finally {
    await rm(repo, { recursive: true });
  }
}

/** Runs the command on a node without a network. */
async function callOn(
  context: CommandContext,
  words: readonly string[],
  { init = false, ...place }: { repo: string; data?: string | undefined; init?: boolean },
): Promise<number> {
  const node = await createNode({ ...place, init, offline: true });
  const host = createHost({
    config: { modules_enabled: ["http"], api_level: await levelOf(context) },
    modules: serving(node, { trusted: true }),
    listen: false,
    log: { level: "error", destination: context.stderr },
  });
  try {
    await host.start();
    return await callRpc(context, words, { server: serverWithin(host), program });
  } finally {
    await host.stop();
    await node.close();
  }
}

/** Runs a command without a daemon. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createNode, isRepo } from "modhost/node";
import type { CommandContext } from "../../../../core/cli/index.ts";
import { createHost } from "../../../../core/index.ts";
import { callRpc } from "../rpc/call.ts";
import { serverInProcess } from "../rpc/server.ts";
import { inlineModules } from "./inline_modules.ts";
import { levelOf } from "./level.ts";
import { program } from "./repo.ts";

/** Commands that need no repo. If there is none, they run in a temporary one. */
const repoless: ReadonlySet<string | undefined> = new Set(["version", "commands", "cid"]);

export interface Stores {
  readonly repo: string;
  readonly data: string | undefined;
}

/**
 * Runs the command in this process and opens the repo meanwhile. Resolves to the exit code.
 *
 * @throws the same errors as `call` /
 */
export async function callWithoutDaemon(
  context: CommandContext,
  words: readonly string[],
  stores: Stores,
): Promise<number> {
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
  { init = false, ...paths }: { repo: string; data?: string | undefined; init?: boolean },
): Promise<number> {
  const node = await createNode({ ...paths, init, offline: true });
  const host = createHost({
    config: { modules_enabled: ["http"], api_level: await levelOf(context) },
    modules: inlineModules(node, { trusted: true }),
    listen: false,
    log: { level: "error", destination: context.stderr },
  });
  try {
    await host.start();
    return await callRpc(context, words, { server: serverInProcess(host), program });
  } finally {
    await host.stop();
    await node.close();
  }
}

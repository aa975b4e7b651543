/** Two fresh servers for conversations that change what they like. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createNode } from "modhost/node";
import { storeSettings } from "#test/support/engines/store_option.ts";
import { apiOnly, RpcServer } from "#test/support/rpc_server.ts";
import type { LevelName } from "./replay.ts";

/**
 * Groups of scenarios with servers of their own. After some the replayer cannot put back the
 * configuration: it lacks the token that one of them asks for from then on, and the key that
 * another has rotated is no longer the one in the configuration. One has no peers, and servers that
 * are older than a minute look for some to announce content to.
 */
const APART = [
  ["level-0.43-config/reading and setting"],
  ["level-0.43-keys/imports", "level-0.43-swarm/limits and reach"],
];

const exactly = (names: readonly string[]): string => names.map((name) => `${RegExp.escape(name)}$`).join("|");

/** `only` as filters of scenarios that can share servers. */
export function filtersOf(only = "", level: LevelName = "0.9"): readonly (string | undefined)[] {
  if (level === "0.9") return [only === "" ? undefined : only];
  const wanted = new RegExp(only);
  const apart = APART.map((names) => names.filter((name) => wanted.test(name))).filter((names) => names.length > 0);
  const others = `^(?!${exactly(APART.flat())})(?=.*?(?:${only}))`;
  return [others, ...apart.map((names) => `^(?:${exactly(names)})`)];
}

/** What the recorded servers had switched on. */
const settings = {
  "Experimental.Libp2pStreamMounting": true,
  "Addresses.Gateway": "/ip4/127.0.0.1/tcp/0",
};
/** Of these, what a shared store does not take. */
const references = { "Experimental.FilestoreEnabled": true, "Experimental.UrlstoreEnabled": true };

export interface ServersOptions {
  /** See `storeSettings`: each has one of its own. */
  readonly store?: string | undefined;
  /** The level at which they answer. */
  readonly level?: LevelName;
}

export async function withServers<T>(
  work: (first: RpcServer, second: RpcServer) => Promise<T>,
  options: ServersOptions = {},
): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), "modhost-transcripts-"));
  const started: RpcServer[] = [];
  try {
    for (const name of ["a", "b"]) started.push(await startFresh(await mkdtemp(join(folder, name)), options));
    return await work(...(started as [RpcServer, RpcServer]));
  } finally {
    await Promise.all(started.map((server) => server.stop()));
    await rm(folder, { recursive: true, force: true });
  }
}

/**
 * A new repo that has what is wanted of it before its server starts: such settings hold from the
 * next start on.
 */
async function startFresh(folder: string, { store, level = "0.9" }: ServersOptions): Promise<RpcServer> {
  const shared = await storeSettings(store);
  {
    await using node = await createNode({
      repo: join(folder, "repo"),
      offline: true,
      ...(shared && { store: shared }),
    });
    for (const [key, value] of Object.entries(shared ? settings : { ...settings, ...references })) {
      await node.config.set(key, value);
    }
  }
  const env = { ...apiOnly, MODHOST_API_LEVEL: level };
  return RpcServer.start({
    folder,
    env: shared === undefined ? env : { ...env, MODHOST_NODE_STORE: JSON.stringify(shared) },
  });
}

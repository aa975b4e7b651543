/** Starts two new servers for conversations, which may change anything on them. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createNode } from "modhost/node";
import type { LevelName } from "#modules/mod_http_api/rpc/levels.ts";
import { storeSettings } from "#test/support/engines/store_option.ts";
import { apiOnly, RpcServer } from "#test/support/rpc_server.ts";

/**
 * Groups of scenarios that need servers of their own. After some, the replayer cannot restore the
 * configuration: it lacks the token that a scenario has made mandatory, and the key in the
 * configuration is no longer the one that a scenario has rotated. One group needs a server without
 * peers, and servers that are older than a minute look for peers to announce content to.
 */
const APART = [
  ["level-0.43-config/reading and setting"],
  ["level-0.43-keys/imports", "level-0.43-swarm/limits and reach"],
];

const exactly = (names: readonly string[]): string => names.map((name) => `${RegExp.escape(name)}$`).join("|");

/** `only`: filters of scenarios that can share servers. */
export function filtersOf(only = "", level: LevelName = "0.9"): readonly (string | undefined)[] {
  if (level === "0.9") return [only === "" ? undefined : only];
  const wanted = new RegExp(only);
  const apart = APART.map((names) => names.filter((name) => wanted.test(name))).filter((names) => names.length > 0);
  const others = `^(?!${exactly(APART.flat())})(?=.*?(?:${only}))`;
  return [others, ...apart.map((names) => `^(?:${exactly(names)})`)];
}

/** Settings that the recorded servers had. */
const settings = {
  "Experimental.Libp2pStreamMounting": true,
  "Addresses.Gateway": "/ip4/127.0.0.1/tcp/0",
};
/** Settings of these that a shared store does not support. */
const references = { "Experimental.FilestoreEnabled": true, "Experimental.UrlstoreEnabled": true };

export interface ServersOptions {
  /** See `storeSettings`: each server has a store of its own. */
  readonly store?: string | undefined;
  /** The level of the RPC API. */
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
 * Makes a new repo with the required settings before its server starts, because they take effect at
 * a start.
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

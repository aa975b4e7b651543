/** Two fresh servers for conversations that change what they like. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { storeEnvironment } from "#test/support/engines/store_option.ts";
import { apiOffline, apiOnly, RpcServer } from "#test/support/rpc_server.ts";
import type { LevelName } from "./replay.ts";

/**
 * Sets API.Authorizations, which holds at once here and from the next start on in the reference: it has servers of its own.
 */
const LOCKING = "level-0.43-config/reading and setting";

/** `only` as filters of scenarios that can share servers. */
export function filtersOf(only = "", level: LevelName = "0.9"): readonly (string | undefined)[] {
  if (level === "0.9") return [only === "" ? undefined : only];
  const others = `^(?!${RegExp.escape(LOCKING)}$)(?=.*?(?:${only}))`;
  return new RegExp(only).test(LOCKING) ? [others, `^${RegExp.escape(LOCKING)}$`] : [others];
}

/** What the recorded servers had switched on. */
const settings = {
  "Experimental.Libp2pStreamMounting": "true",
  "Addresses.Gateway": '"/ip4/127.0.0.1/tcp/0"',
};
/** Of these, what a shared store does not take. */
const references = { "Experimental.FilestoreEnabled": "true", "Experimental.UrlstoreEnabled": "true" };

export interface ServersOptions {
  /** See `storeEnvironment`: each has one of its own. */
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

/** Settings hold from the next start on. */
async function startFresh(folder: string, { store, level = "0.9" }: ServersOptions): Promise<RpcServer> {
  const stores = { ...(await storeEnvironment(store)), MODHOST_API_LEVEL: level };
  const wanted = "MODHOST_NODE_STORE" in stores ? settings : { ...settings, ...references };
  const server = await RpcServer.start({ folder, env: { ...apiOffline, ...stores } });
  try {
    for (const [key, value] of Object.entries(wanted)) {
      const answer = await server.call(`config/${key}`, { arg: value, json: "true" });
      if (!answer.ok) throw new Error(`${key} cannot be set: ${await answer.text()}`);
    }
  } finally {
    await server.stop();
  }
  return RpcServer.start({ folder, env: { ...apiOnly, ...stores } });
}

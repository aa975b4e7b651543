/** Two fresh servers for conversations that change what they like. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { storeEnvironment } from "#test/support/engines/store_option.ts";
import { apiOffline, apiOnly, RpcServer } from "#test/support/rpc_server.ts";

/** What the recorded servers had switched on. */
const settings = {
  "Experimental.Libp2pStreamMounting": "true",
  "Addresses.Gateway": '"/ip4/127.0.0.1/tcp/0"',
};
/** Of these, what a shared store does not take. */
const references = { "Experimental.FilestoreEnabled": "true", "Experimental.UrlstoreEnabled": "true" };

/** @param store see `storeEnvironment`: each has one of its own */
export async function withServers<T>(
  work: (first: RpcServer, second: RpcServer) => Promise<T>,
  store?: string,
): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), "modhost-transcripts-"));
  const started: RpcServer[] = [];
  try {
    for (const name of ["a", "b"]) started.push(await startFresh(await mkdtemp(join(folder, name)), store));
    return await work(...(started as [RpcServer, RpcServer]));
  } finally {
    await Promise.all(started.map((server) => server.stop()));
    await rm(folder, { recursive: true, force: true });
  }
}

/** Settings hold from the next start on. */
async function startFresh(folder: string, store: string | undefined): Promise<RpcServer> {
  const stores = await storeEnvironment(store);
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

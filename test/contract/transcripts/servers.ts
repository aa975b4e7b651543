/** Two fresh servers for conversations that change what they like. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { apiOffline, apiOnly, RpcServer } from "#test/support/rpc_server.ts";

/** What the recorded servers had switched on. */
const settings = {
  "Experimental.FilestoreEnabled": "true",
  "Experimental.UrlstoreEnabled": "true",
  "Experimental.Libp2pStreamMounting": "true",
  "Addresses.Gateway": '"/ip4/127.0.0.1/tcp/0"',
};

export async function withServers<T>(work: (first: RpcServer, second: RpcServer) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), "modhost-transcripts-"));
  const started: RpcServer[] = [];
  try {
    for (const name of ["a", "b"]) started.push(await startFresh(await mkdtemp(join(folder, name))));
    return await work(...(started as [RpcServer, RpcServer]));
  } finally {
    await Promise.all(started.map((server) => server.stop()));
    await rm(folder, { recursive: true, force: true });
  }
}

/** Settings hold from the next start on. */
async function startFresh(folder: string): Promise<RpcServer> {
  const server = await RpcServer.start({ folder, env: apiOffline });
  try {
    for (const [key, value] of Object.entries(settings)) {
      const answer = await server.call(`config/${key}`, { arg: value, json: "true" });
      if (!answer.ok) throw new Error(`${key} cannot be set: ${await answer.text()}`);
    }
  } finally {
    await server.stop();
  }
  return RpcServer.start({ folder, env: apiOnly });
}

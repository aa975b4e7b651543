/** Hosts on one store, each a process of its own. */
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { StoreSettings } from "#test/support/engines/shared_store.ts";
import { apiOffline, RpcServer } from "#test/support/rpc_server.ts";
import type { Host } from "./works.ts";

/** On a host that is named, from its folder: that of a new one is made. */
export async function startHost(folder: string, name: string, store: StoreSettings): Promise<Host> {
  const own = join(folder, name);
  await mkdir(own, { recursive: true });
  const server = await RpcServer.start({
    folder: own,
    env: { ...apiOffline, MODHOST_NODE_STORE: JSON.stringify(store) },
  });
  try {
    const { ID: id } = (await (await server.call("id")).json()) as { ID: string };
    return { name, id, server };
  } catch (error) {
    await server.stop();
    throw error;
  }
}

/** Nodes that begin to look for each other while they run. */
import { setTimeout as pause } from "node:timers/promises";
import { listeningSockets } from "#test/support/sockets.ts";
import { startNode } from "#test/unit/modules/mod_node/network/kad/support.ts";

const datagrams = async () => (await listeningSockets()).filter((socket) => socket.startsWith("udp"));
async function until(condition: () => boolean | Promise<boolean>): Promise<boolean> {
  const end = Date.now() + 60_000;
  while (Date.now() < end && !(await condition())) await pause(20);
  return condition();
}

const nodes = [await startNode(), await startNode()] as const;
const set = async (key: string, value: unknown) => {
  for (const { node } of nodes) await node.repo.config.set(key, () => value);
};
const before = await datagrams();
await set("Discovery.MDNS.Interval", 1);
await set("Discovery.MDNS.Enabled", true);
const found = await until(() => nodes[0].network.swarm.connections(nodes[1].id).length > 0);
const during = await datagrams();
await set("Discovery.MDNS.Enabled", false);
const gone = await datagrams();
for (const node of nodes) await node[Symbol.asyncDispose]();
console.log(JSON.stringify({ before, found, during, gone }));

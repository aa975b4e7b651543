/**
 * Nodes in a home network behind a gateway, and a node outside that tests whether they are
 * reachable.
 */
import { setTimeout as delay } from "node:timers/promises";
import { listeningSockets } from "#test/support/sockets.ts";
import { connectTo, startPeer } from "#test/unit/modules/mod_node/network/swarm/support.ts";
import { startGateway } from "./gateway.ts";

const addresses = { home: "192.168.77.2", outside: "8.8.4.4", world: "1.0.0.1" };
const swarm = (host: string) => ({ "Addresses.Swarm": [`/ip4/${host}/tcp/0`] });

const gateway = await startGateway(addresses.home, addresses.outside);
const shy = await startPeer({ config: { ...swarm(addresses.home), "Swarm.DisableNatPortMap": true } });
const sockets = (await listeningSockets()).filter((socket) => socket.startsWith("udp"));
const open = await startPeer({ config: { ...swarm(addresses.home), "Swarm.DisableNatPortMap": false } });
const world = await startPeer({ config: swarm(addresses.world) });

const outer = await gateway.opened;
const reached = `/ip4/${addresses.outside}/tcp/${outer}`;
const announced = () => open.swarm.announcedAddresses().map(String);
const unproven = announced().includes(reached);
/** Polls a condition until its timeout. */
async function until(holds: () => boolean, milliseconds: number): Promise<boolean> {
  for (const end = Date.now() + milliseconds; !holds() && Date.now() < end; ) await delay(10);
  return holds();
}
// Every connected peer is asked to dial back once the node knows the address.
const isProven = () => announced().includes(reached);
for (let meeting = 0; meeting < 10 && !isProven(); meeting++) {
  await connectTo(open, world);
  await until(isProven, 5000);
  await open.swarm.disconnect(world.swarm.id, undefined).catch(() => undefined);
}
const proven = isProven();
// The node applies the change while it runs.
const searches = () => gateway.requests.filter((action) => action === "search").length;
const before = searches();
await shy.repo.config.set("Swarm.DisableNatPortMap", () => false);
await shy.swarm.live.renewPortMapping();
const joined = await until(() => searches() > before, 20_000);
await shy.repo.config.set("Swarm.DisableNatPortMap", () => true);
await shy.swarm.live.renewPortMapping();
const port = String(open.swarm.listenAddresses()[0]).split("/").at(-1);
await Promise.all([shy, open, world].map((peer) => peer.stop()));
const requests = [...new Set(gateway.requests)].map((action) => action.replace(port as string, "PORT"));
await gateway[Symbol.asyncDispose]();
console.log(JSON.stringify({ sockets, unproven, proven, joined, requests }));

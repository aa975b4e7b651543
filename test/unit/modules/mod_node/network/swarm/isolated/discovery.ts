/** Peers of one local network, one of which has discovery disabled. */
import { listeningSockets } from "#test/support/sockets.ts";
import { next, startPeer } from "#test/unit/modules/mod_node/network/swarm/support.ts";

const datagrams = async () => (await listeningSockets()).filter((socket) => socket.startsWith("udp"));

const silent = await startPeer({ config: { "Discovery.MDNS.Enabled": false } });
const before = await datagrams();
const config = { "Discovery.MDNS.Enabled": true, "Discovery.MDNS.Interval": 1 };
const first = await startPeer({ config });
const met = next(first, "peer:connect");
const second = await startPeer({ config });
const found = String(await met) === String(second.swarm.id);
const during = await datagrams();
const connected = [first, second, silent].map(({ swarm }) => swarm.libp2p.getPeers().length);
await Promise.all([first, second, silent].map((peer) => peer.stop()));
console.log(JSON.stringify({ before, found, during, connected, after: await datagrams() }));

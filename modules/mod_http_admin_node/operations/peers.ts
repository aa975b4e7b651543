/** Operations on connections to peers. */
import { parseDuration } from "modhost/node";
import { HttpError } from "../../../core/index.ts";
import { within } from "../failures.ts";
import type { PeerAnswer, PeerConnection, PeerList } from "../types.ts";
import { type Deps, nodeOperation } from "./operation.ts";

const CONNECT_SECONDS = 30;
/** Parts of an address that are not transports. */
const notTransports: ReadonlySet<string> = new Set(["ip4", "ip6", "ip6zone", "dns", "dns4", "dns6", "dnsaddr", "p2p"]);

const address = { type: "string", required: true, describe: "Its address, which ends in /p2p/ID" } as const;

export const peerOperations = [
  nodeOperation({
    name: "node_peers",
    method: "GET",
    path: "/node/peers",
    scope: "read",
    help: "Open connections to peers: address, agent, latency, direction, streams, since when",
    response: "PeerList",
    run: ({ node }) => peersOf(node),
  }),
  nodeOperation({
    name: "node_connect",
    method: "POST",
    path: "/node/peers/connect",
    scope: "admin",
    help: "Connect to a peer",
    input: { address },
    response: "PeerAnswer",
    records: (input) => `connect the node to ${input.address}`,
    run: async ({ node, signal, input }): Promise<PeerAnswer> => {
      const [message = ""] = await node.swarm.connect(input.address, { signal: within(signal, CONNECT_SECONDS) });
      return { message };
    },
  }),
  nodeOperation({
    name: "node_disconnect",
    method: "POST",
    path: "/node/peers/disconnect",
    scope: "admin",
    help: "Close the connections to a peer, or to one of its addresses",
    input: { address: { ...address, describe: "/p2p/ID for all of its connections, or one address with its id" } },
    response: "PeerAnswer",
    records: (input) => `disconnect the node from ${input.address}`,
    run: async ({ node, input }): Promise<PeerAnswer> => {
      const [message = ""] = await node.swarm.disconnect(input.address);
      if (!message.endsWith(" success")) throw new HttpError(409, message);
      return { message };
    },
  }),
];

async function peersOf(node: Deps["node"]): Promise<PeerList> {
  if (!node.lowLevel.online) return { online: false, peers: [] };
  const found = await node.swarm.peers({ verbose: true, details: true });
  const peers = found.map(({ addr, peer, latency, streams, direction = "outbound", agentVersion = "", opened }) => {
    const shown: PeerConnection = {
      id: peer.toString(),
      address: addr.toString(),
      transport: transportOf(addr.toString()),
      agent: agentVersion,
      ...(latency === "n/a" || latency === "" ? {} : { latency: Math.round(parseDuration(latency) * 1000) / 1000 }),
      direction,
      streams: (streams ?? []).map(({ Protocol }) => Protocol),
      opened: (opened ?? new Date()).toISOString(),
    };
    return shown;
  });
  return { online: true, peers };
}

/** Returns the transport: for `/ip4/1.2.3.4/tcp/4001/ws` it is `ws`. */
function transportOf(text: string): string {
  const names = text.split("/").filter((part) => /^[a-z][a-z0-9-]*$/.test(part) && !notTransports.has(part));
  return names.at(-1) ?? "";
}

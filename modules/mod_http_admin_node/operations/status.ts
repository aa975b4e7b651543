/** Operations for the node's identity, state and history. */
import { apiVersion } from "modhost/node";
import type { Bandwidth, NodeStatus, Traffic } from "../types.ts";
import { type Deps, nodeOperation } from "./operation.ts";

const MAX_PROTOCOLS = 50;

export const statusOperations = [
  nodeOperation({
    name: "node_status",
    method: "GET",
    path: "/node",
    scope: "read",
    help: "The node's identity, addresses, and the size of its repo",
    response: "NodeStatus",
    run: ({ node }) => statusOf(node),
  }),
  nodeOperation({
    name: "node_figures",
    method: "GET",
    path: "/node/figures",
    scope: "read",
    help: "Current metrics of the node",
    response: "NodeFiguresNow",
    run: ({ history }) => history.now(),
  }),
  nodeOperation({
    name: "node_history",
    method: "GET",
    path: "/node/history",
    scope: "read",
    help: "Metrics of the node in the last hour: peers, rates, size of the repo, blocks",
    response: "NodeHistory",
    run: ({ history }) => history.history(),
  }),
  nodeOperation({
    name: "node_bandwidth",
    method: "GET",
    path: "/node/bandwidth",
    scope: "read",
    help: "Bytes exchanged with peers, in total and by protocol",
    response: "Bandwidth",
    run: ({ node }) => bandwidthOf(node),
  }),
];

async function statusOf(node: Deps["node"]): Promise<NodeStatus> {
  const { id, publicKey, addresses, agentVersion, protocolVersion, protocols } = await node.id();
  const online = addresses !== null;
  const { bytes, blocks, storageMax } = await node.lowLevel.stat();
  const { repo } = node.lowLevel;
  return {
    id: id.toString(),
    public_key: publicKey,
    agent: agentVersion,
    protocol: protocolVersion,
    version: apiVersion,
    online,
    offline: node.offline,
    addresses: (addresses ?? []).map(String),
    listening: online ? (await node.swarm.listenAddrs()).map(String) : [],
    protocols: protocols ?? [],
    repo: { size: bytes, ...(storageMax === undefined ? {} : { limit: storageMax }), blocks, version: repo.version },
    path: repo.path,
  };
}

async function bandwidthOf({ lowLevel }: Deps["node"]): Promise<Bandwidth> {
  const network = lowLevel.online ? await lowLevel.network().catch(() => undefined) : undefined;
  const counted = network?.swarm.bandwidth;
  if (counted === undefined)
    return { total: trafficOf({ TotalIn: 0, TotalOut: 0, RateIn: 0, RateOut: 0 }), protocols: [] };
  const all = [...counted.protocols()].map((protocol) => ({ protocol, ...trafficOf(counted.protocol(protocol)) }));
  const busiest = all.sort((a, b) => b.total_in + b.total_out - (a.total_in + a.total_out));
  return { total: trafficOf(counted.total()), protocols: busiest.slice(0, MAX_PROTOCOLS) };
}

interface Counted {
  readonly TotalIn: number;
  readonly TotalOut: number;
  readonly RateIn: number;
  readonly RateOut: number;
}

function trafficOf({ TotalIn, TotalOut, RateIn, RateOut }: Counted): Traffic {
  return { total_in: TotalIn, total_out: TotalOut, rate_in: Math.round(RateIn), rate_out: Math.round(RateOut) };
}

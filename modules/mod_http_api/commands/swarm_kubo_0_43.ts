/**
 * The `swarm` commands that Kubo 0.43 added: peering, resources, and whether other peers can reach
 * the node.
 */
import type { ResourceScope, ResourceUse } from "modhost/node";
import { columns } from "../rpc/columns.ts";
import { type Commands, defineGroup, readCommand, stream, value, writeCommand } from "../rpc/command.ts";
import { fields, map, type ValueOf } from "../rpc/shape.ts";
import { lines, texts } from "./shapes.ts";

const since = "0.43";

const done = stream(fields("peeringResult", { ID: "string", Status: "string" }));

async function* successes(ids: Promise<readonly { toString(): string }[]>) {
  for (const id of await ids) yield { ID: String(id), Status: "success" };
}

/** A limit is a number or `unlimited`. The memory limit is a number as text. */
const scope = fields("LimitsAndUsage", {
  Memory: "string",
  MemoryUsage: "int64",
  FD: "any",
  FDUsage: "int64",
  Conns: "any",
  ConnsUsage: "int64",
  ConnsInbound: "any",
  ConnsInboundUsage: "int64",
  ConnsOutbound: "any",
  ConnsOutboundUsage: "int64",
  Streams: "any",
  StreamsUsage: "int64",
  StreamsInbound: "any",
  StreamsInboundUsage: "int64",
  StreamsOutbound: "any",
  StreamsOutboundUsage: "int64",
});
type ShownScope = ValueOf<typeof scope>;

const UNLIMITED = "unlimited";

const limitOf = ({ limit }: ResourceUse): string | number => limit ?? UNLIMITED;

const shownScope = (of: ResourceScope): ShownScope => ({
  Memory: String(limitOf(of.memory)),
  MemoryUsage: of.memory.used,
  FD: limitOf(of.descriptors),
  FDUsage: of.descriptors.used,
  Conns: limitOf(of.connections),
  ConnsUsage: of.connections.used,
  ConnsInbound: limitOf(of.connectionsInbound),
  ConnsInboundUsage: of.connectionsInbound.used,
  ConnsOutbound: limitOf(of.connectionsOutbound),
  ConnsOutboundUsage: of.connectionsOutbound.used,
  Streams: limitOf(of.streams),
  StreamsUsage: of.streams.used,
  StreamsInbound: limitOf(of.streamsInbound),
  StreamsInboundUsage: of.streamsInbound.used,
  StreamsOutbound: limitOf(of.streamsOutbound),
  StreamsOutboundUsage: of.streamsOutbound.used,
});

const shownScopes = (of: ReadonlyMap<string, ResourceScope>): Readonly<Record<string, ShownScope>> =>
  Object.fromEntries([...of].map(([name, each]) => [name, shownScope(each)]));

const resources = fields("LimitsConfigAndUsage", {
  System: scope,
  Transient: scope,
  Services: map(scope),
  "Protocols?": map(scope),
  "Peers?": map(scope),
});

const measures = [
  "Memory",
  "FD",
  "Conns",
  "ConnsInbound",
  "ConnsOutbound",
  "Streams",
  "StreamsInbound",
  "StreamsOutbound",
] as const;

/** Returns how much of a limit is in use, as a percentage. */
function share(limit: unknown, used: number): string {
  const most = Number(limit);
  return Number.isNaN(most) || most === 0 ? "n/a" : `${Math.floor((used / most) * 100)}%`;
}

/** Returns a row for each resource that is limited or in use. */
function rowsOf(name: string, shown: ShownScope): string[][] {
  return measures.flatMap((measure) => {
    const limit = shown[measure];
    const used = shown[`${measure}Usage`];
    if (limit === UNLIMITED && used === 0) return [];
    return [[name, measure, String(limit), String(used), share(limit, used)]];
  });
}

function resourcesText({ System, Transient, Services, Protocols = {}, Peers = {} }: ValueOf<typeof resources>): string {
  const many = (kind: string, of: Readonly<Record<string, ShownScope>>) =>
    Object.entries(of).flatMap(([name, shown]) => rowsOf(`${kind}:${name}`, shown));
  const rows = [
    ["Scope", "Limit Name", "Limit Value", "Limit Usage Amount", "Limit Usage Percent"],
    ...rowsOf("system", System),
    ...rowsOf("transient", Transient),
    ...many("svc", Services),
    ...many("proto", Protocols),
    ...many("peer", Peers),
  ];
  return columns(rows, 4, 2);
}

export const commands = {
  "swarm/addrs/autonat": readCommand({
    help: "Shows whether other peers can reach this node.",
    since,
    returns: value(
      fields("autoNATResult", {
        reachability: "string",
        "reachable?": ["string"],
        "unreachable?": ["string"],
        "unknown?": ["string"],
      }),
    ),
    async run({ node }) {
      const { reachability, reachable, unreachable, unknown } = await node.swarm.autonat();
      return {
        reachability,
        ...(reachable.length > 0 && { reachable: texts(reachable) }),
        ...(unreachable.length > 0 && { unreachable: texts(unreachable) }),
        ...(unknown.length > 0 && { unknown: texts(unknown) }),
      };
    },
    text({ reachability, ...byAddress }) {
      const listed = (["reachable", "unreachable", "unknown"] as const).flatMap((name) => {
        const addresses = byAddress[name] ?? [];
        return addresses.length === 0 ? [] : [`  ${name}:`, ...addresses.map((address) => `    ${address}`)];
      });
      return lines([
        "AutoNAT V2 Status:",
        `  Reachability: ${reachability}`,
        "",
        "Per-Address Reachability:",
        ...(listed.length === 0 ? ["  (no address reachability data available)"] : listed),
      ]);
    },
  }),
  "swarm/peering": defineGroup({ help: "Maintain connections to peers.", since }),
  "swarm/peering/add": writeCommand({
    help: "Maintains connections to peers: dials them at once, and again whenever a connection is lost.",
    since,
    arguments: [
      {
        name: "address",
        required: true,
        variadic: true,
        stdin: "lines",
        help: "The peers, as `<multiaddr>/p2p/<peer ID>`.",
      },
    ],
    returns: done,
    run: ({ node, arguments: { address } }) => successes(node.swarm.peering.add(address)),
    text: ({ ID, Status }) => `add ${ID} ${Status}\n`,
  }),
  "swarm/peering/ls": readCommand({
    help: "Lists the peers to which connections are maintained.",
    since,
    returns: value(fields("addrInfos", { Peers: [fields("peerAddrInfo", { ID: "string", Addrs: ["string"] })] })),
    run: async ({ node }) => ({
      Peers: (await node.swarm.peering.ls()).map(({ id, addrs }) => ({ ID: String(id), Addrs: texts(addrs) })),
    }),
    text: ({ Peers }) => Peers.map(({ ID, Addrs }) => lines([ID, ...Addrs.map((address) => `\t${address}`)])).join(""),
  }),
  "swarm/peering/rm": writeCommand({
    help: "Stops maintaining connections to peers; open connections stay open.",
    since,
    arguments: [{ name: "ID", required: true, variadic: true, stdin: "lines", help: "The ids of the peers." }],
    returns: done,
    run: ({ node, arguments: { ID } }) => successes(node.swarm.peering.rm(ID)),
    text: ({ ID, Status }) => `remove ${ID} ${Status}\n`,
  }),
  "swarm/resources": readCommand({
    help: "Shows how much memory, and how many descriptors and streams connections use, and their limits.",
    since,
    returns: value(resources),
    async run({ node }) {
      const { system, transient, services, protocols, peers } = await node.swarm.resources();
      return {
        System: shownScope(system),
        Transient: shownScope(transient),
        Services: shownScopes(services),
        ...(protocols.size > 0 && { Protocols: shownScopes(protocols) }),
        ...(peers.size > 0 && { Peers: shownScopes(peers) }),
      };
    },
    text: resourcesText,
  }),
} satisfies Commands;

/** `swarm`: connections to peers. */
import type { SwarmPeersResult } from "modhost/node";
import {
  type Argument,
  type Commands,
  defineGroup,
  type Option,
  readCommand,
  value,
  writeCommand,
} from "../rpc/command.ts";
import { fields, map, nullable, type ValueOf } from "../rpc/shape.ts";
import { lines, orNull, strings, texts, verbose } from "./shapes.ts";

const addresses = (help: string) =>
  [{ name: "address", required: true, variadic: true, stdin: "first", help }] as const satisfies readonly Argument[];

const flag = (help: string) => ({ type: "bool", help }) as const satisfies Option;

const directions = { unknown: 0, inbound: 1, outbound: 2 } as const;

const streams = nullable([fields("streamInfo", { Protocol: "string" })]);
/** The facts that a peer reports about itself; empty unless `identify` is set. */
const identified = fields("IdOutput", {
  ID: "string",
  PublicKey: "string",
  Addresses: nullable(["string"]),
  AgentVersion: "string",
  Protocols: nullable(["string"]),
});
const connInfo = fields("connInfo", {
  Addr: "string",
  Peer: "string",
  Latency: "string",
  Muxer: "string",
  Direction: "int",
  Streams: streams,
  "Identify?+": identified,
});
type ShownPeer = ValueOf<typeof connInfo>;

const shownPeer = (
  { addr, peer, latency, muxer, direction, streams, identify }: SwarmPeersResult,
  withIdentify: boolean | undefined,
): ShownPeer => ({
  Addr: String(addr),
  Peer: String(peer),
  Latency: latency,
  Muxer: muxer,
  Direction: directions[direction ?? "unknown"],
  Streams: streams,
  ...(withIdentify === true && { Identify: shownIdentity(identify) }),
});

const shownIdentity = (identify: SwarmPeersResult["identify"]): ValueOf<typeof identified> => ({
  ID: String(identify?.id ?? ""),
  PublicKey: identify?.publicKey ?? "",
  Addresses: identify?.addresses ? texts(identify.addresses) : null,
  AgentVersion: identify?.agentVersion ?? "",
  Protocols: identify?.protocols ?? null,
});

/** The connection at the level 0.43, which omits facts that were not requested. */
const connInfoKubo043 = fields("connInfo", {
  Addr: "string",
  Peer: "string",
  "Latency?": "string",
  "Muxer?": "string",
  "Direction?": "int",
  "Streams?": streams,
  Identify: identified,
});

function shownPeerKubo043(result: SwarmPeersResult): ValueOf<typeof connInfoKubo043> {
  const { Addr, Peer, Latency, Muxer, Direction, Streams } = shownPeer(result, false);
  return {
    Addr,
    Peer,
    ...(Latency !== "" && { Latency }),
    ...(Muxer !== "" && { Muxer }),
    ...(Direction !== directions.unknown && { Direction }),
    ...(Streams !== null && { Streams }),
    Identify: shownIdentity(result.identify),
  };
}

function peerLine({
  Addr,
  Peer,
  Latency = "",
  Direction = directions.unknown,
  Streams,
}: Pick<ShownPeer, "Addr" | "Peer"> & Partial<ShownPeer>): string {
  const words = [`${Addr}/p2p/${Peer}`];
  if (Latency !== "") words.push(Latency);
  if (Direction !== directions.unknown) words.push(Direction === directions.inbound ? "inbound" : "outbound");
  const streams = (Streams ?? []).map(({ Protocol }) => `  ${Protocol || "<no protocol name>"}`);
  return lines([words.join(" "), ...streams]);
}

const peersAbout = {
  help: "Lists the open connections.",
  options: {
    verbose: verbose("Show all facts about the connections."),
    streams: flag("Also show the streams."),
    latency: flag("Also show the latency."),
    direction: flag("Also show which side opened the connection."),
    identify: { ...flag("Also show the facts that peers report about themselves."), since: "0.43" },
  },
} as const;

export const commands = {
  swarm: defineGroup({ help: "Manage the connections to peers." }),
  "swarm/addrs": readCommand({
    help: "Lists the known addresses of all known peers.",
    returns: value(fields("addrMap", { Addrs: map(["string"]) })),
    async run({ node }) {
      return {
        Addrs: Object.fromEntries((await node.swarm.addrs()).map(({ id, addrs }) => [String(id), texts(addrs)])),
      };
    },
    text: ({ Addrs }) =>
      Object.entries(Addrs)
        .map(([id, known]) => lines([`${id} (${known.length})`, ...known.map((address) => `\t${address}`)]))
        .join(""),
  }),
  "swarm/addrs/listen": readCommand({
    help: "Lists the addresses that the node listens on.",
    ...strings,
    run: async ({ node }) => ({ Strings: orNull(texts(await node.swarm.listenAddrs())) }),
  }),
  "swarm/addrs/local": readCommand({
    help: "Lists the addresses that the node announces.",
    options: { id: flag("Append the peer ID.") },
    ...strings,
    run: async ({ node, options }) => ({ Strings: orNull(texts(await node.swarm.localAddrs(options))) }),
  }),
  "swarm/connect": writeCommand({
    help: "Connects to peers.",
    arguments: addresses("The peers, as `<multiaddr>/p2p/<peer ID>`."),
    ...strings,
    run: async ({ node, arguments: { address }, signal }) => ({
      Strings: await node.swarm.connect(address, { signal }),
    }),
  }),
  "swarm/disconnect": writeCommand({
    help: "Closes the connections to peers.",
    arguments: addresses("The peers, as `<multiaddr>/p2p/<peer ID>`, or `/p2p/<peer ID>`."),
    ...strings,
    async run({ node, arguments: { address }, signal }) {
      return { Strings: await node.swarm.disconnect(address, { signal }) };
    },
  }),
  "swarm/filters": readCommand({
    help: "Lists the address filters.",
    ...strings,
    run: async ({ node }) => ({ Strings: orNull(await node.swarm.filters.list()) }),
  }),
  "swarm/filters/add": writeCommand({
    help: "Adds address filters.",
    arguments: addresses("The ranges, such as `/ip4/192.168.0.0/ipcidr/16`."),
    ...strings,
    run: async ({ node, arguments: { address } }) => ({ Strings: await node.swarm.filters.add(address) }),
  }),
  "swarm/filters/rm": writeCommand({
    help: "Removes address filters.",
    arguments: addresses("The ranges; `all` for all of them."),
    ...strings,
    run: async ({ node, arguments: { address } }) => ({ Strings: await node.swarm.filters.rm(address) }),
  }),
  "swarm/peers": readCommand({
    ...peersAbout,
    returns: value(fields("connInfos", { Peers: nullable([connInfo]) })),
    run: async ({ node, options }) => ({
      Peers: orNull((await node.swarm.peers(options)).map((peer) => shownPeer(peer, options.identify))),
    }),
    text: ({ Peers: peers }) => (peers ?? []).map(peerLine).join(""),
  }),
} satisfies Commands;

export const kubo043 = {
  "swarm/peers": readCommand({
    ...peersAbout,
    returns: value(fields("connInfos", { Peers: nullable([connInfoKubo043]) })),
    run: async ({ node, options }) => ({ Peers: orNull((await node.swarm.peers(options)).map(shownPeerKubo043)) }),
    text: ({ Peers: peers }) => (peers ?? []).map(peerLine).join(""),
  }),
} satisfies Commands;

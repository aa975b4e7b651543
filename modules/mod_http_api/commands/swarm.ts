/** Connections to peers. */
import type { Connection } from "@libp2p/interface";
import type { LowLevelNode as Node } from "../../mod_node/index.ts";
import { transportOf, withPeer } from "../../mod_node/network/swarm/multiaddr.ts";
import { resolvePeers } from "../../mod_node/network/swarm/resolve_peers.ts";
import type { Swarm } from "../../mod_node/network/swarm/swarm.ts";
import { NodeError } from "../../mod_node/util/errors.ts";
import { formatDuration } from "../../mod_node/util/go/duration.ts";
import { type Argument, type Commands, defineCommand, defineGroup, type Option, value } from "../rpc/command.ts";
import { fields, map, nullable, type ValueOf } from "../rpc/shape.ts";
import { lines, orNull, strings, verbose } from "./shapes.ts";

const addresses = (help: string) =>
  [{ name: "address", required: true, variadic: true, stdin: "first", help }] as const satisfies readonly Argument[];

const flag = (help: string) => ({ type: "bool", help }) as const satisfies Option;

const peersOf = async (node: Node): Promise<Swarm> => (await node.network("failure", "OFFLINE")).swarm;
const filteringOf = async (node: Node): Promise<Swarm> => (await node.network()).swarm;

const directions = { unknown: 0, inbound: 1, outbound: 2 } as const;

const connInfo = fields("connInfo", {
  Addr: "string",
  Peer: "string",
  Latency: "string",
  Muxer: "string",
  Direction: "int",
  Streams: nullable([fields("streamInfo", { Protocol: "string" })]),
});
type ShownPeer = ValueOf<typeof connInfo>;

interface Shown {
  readonly latency: boolean;
  readonly direction: boolean;
  readonly streams: boolean;
}

function shownPeer(peers: Swarm, connection: Connection, show: Shown): ShownPeer {
  const { remoteAddr, remotePeer, direction, streams } = connection;
  const latency = peers.ping.latencies.of(remotePeer);
  const protocols = streams.map(({ protocol }) => protocol).sort();
  return {
    Addr: transportOf(remoteAddr).toString(),
    Peer: remotePeer.toString(),
    Latency: !show.latency ? "" : latency === undefined ? "n/a" : formatDuration(latency),
    Muxer: "",
    Direction: show.direction ? directions[direction] : directions.unknown,
    Streams: show.streams ? protocols.map((Protocol) => ({ Protocol })) : null,
  };
}

function peerLine({ Addr, Peer, Latency, Direction, Streams }: ShownPeer): string {
  const words = [`${Addr}/p2p/${Peer}`];
  if (Latency !== "") words.push(Latency);
  if (Direction !== directions.unknown) words.push(Direction === directions.inbound ? "inbound" : "outbound");
  const streams = (Streams ?? []).map(({ Protocol }) => `  ${Protocol || "<no protocol name>"}`);
  return lines([words.join(" "), ...streams]);
}

/** What is no failure of the node is thrown on. */
function faultOf(error: unknown): NodeError {
  if (error instanceof NodeError) return error;
  throw error;
}

/** What somebody typed, each once. */
const typed = (texts: readonly string[]): readonly string[] => [...new Set(texts)];

export const commands = {
  swarm: defineGroup({ help: "Look after the connections to peers." }),
  "swarm/addrs": defineCommand({
    help: "Lists the known addresses of all known peers.",
    returns: value(fields("addrMap", { Addrs: map(["string"]) })),
    async run({ lowLevel: node }) {
      const book = [...(await (await peersOf(node)).addressBook())].sort(([a], [b]) => (a < b ? -1 : 1));
      return { Addrs: Object.fromEntries(book.map(([id, known]) => [id, known.map(String)])) };
    },
    text: ({ Addrs }) =>
      Object.entries(Addrs)
        .map(([id, known]) => lines([`${id} (${known.length})`, ...known.map((address) => `\t${address}`)]))
        .join(""),
  }),
  "swarm/addrs/listen": defineCommand({
    help: "Lists the addresses that the node listens on.",
    ...strings,
    async run({ lowLevel: node }) {
      const peers = await peersOf(node);
      const relay = peers.relayEnabled ? ["/p2p-circuit"] : [];
      return { Strings: orNull([...peers.listenAddresses().map(String), ...relay].sort()) };
    },
  }),
  "swarm/addrs/local": defineCommand({
    help: "Lists the addresses that the node tells others.",
    options: { id: flag("Append the peer ID.") },
    ...strings,
    async run({ lowLevel: node, options: { id } }) {
      const peers = await peersOf(node);
      const known = peers.announcedAddresses();
      return { Strings: orNull(known.map((address) => String(id === true ? withPeer(address, peers.id) : address))) };
    },
  }),
  "swarm/connect": defineCommand({
    help: "Connects to peers.",
    arguments: addresses("The peers, as `<multiaddr>/p2p/<peer ID>`."),
    ...strings,
    async run({ lowLevel: node, arguments: { address }, signal }) {
      const done: string[] = [];
      for (const { id, addresses: known } of await resolvePeers(address, signal)) {
        try {
          await (await peersOf(node)).connectTagged(id, known, signal);
        } catch (error) {
          signal.throwIfAborted();
          throw new NodeError(`connect ${id} failure: ${faultOf(error).message}`, { cause: error });
        }
        done.push(`connect ${id} success`);
      }
      return { Strings: done };
    },
  }),
  "swarm/disconnect": defineCommand({
    help: "Closes the connections to peers.",
    arguments: addresses("The peers, as `<multiaddr>/p2p/<peer ID>`, or `/p2p/<peer ID>`."),
    ...strings,
    async run({ lowLevel: node, arguments: { address }, signal }) {
      const done: string[] = [];
      for (const { id, addresses: named } of await resolvePeers(address, signal)) {
        for (const one of named.length === 0 ? [undefined] : named) {
          const ended = peersOf(node).then((peers) => peers.disconnect(id, one));
          const failed = await ended.catch(faultOf);
          done.push(failed === undefined ? `disconnect ${id} success` : `disconnect ${id} failure: ${failed.message}`);
        }
      }
      return { Strings: done };
    },
  }),
  "swarm/filters": defineCommand({
    help: "Lists the address ranges that are refused.",
    ...strings,
    run: async ({ lowLevel: node }) => ({ Strings: orNull((await filteringOf(node)).filters.list()) }),
  }),
  "swarm/filters/add": defineCommand({
    help: "Refuses address ranges.",
    arguments: addresses("The ranges, such as `/ip4/192.168.0.0/ipcidr/16`."),
    ...strings,
    async run({ lowLevel: node, arguments: { address } }) {
      const { filters } = await filteringOf(node);
      for (const range of address) filters.add(range);
      const added = typed(address);
      await node.repo.config.update("Swarm.AddrFilters", (before) => typed([...added, ...(before ?? [])]));
      return { Strings: added };
    },
  }),
  "swarm/filters/rm": defineCommand({
    help: "Refuses address ranges no longer.",
    arguments: addresses("The ranges; `all` for all of them."),
    ...strings,
    async run({ lowLevel: node, arguments: { address } }) {
      const { filters } = await filteringOf(node);
      const all = address[0] === "all" || address[0] === "*";
      if (all) filters.clear();
      else for (const range of address) filters.remove(range);
      let removed: readonly string[] | null = null;
      await node.repo.config.update("Swarm.AddrFilters", (before) => {
        removed = all ? before : (before ?? []).filter((range) => address.includes(range));
        return all ? null : (before ?? []).filter((range) => !address.includes(range));
      });
      return { Strings: removed };
    },
  }),
  "swarm/peers": defineCommand({
    help: "Lists the open connections.",
    options: {
      verbose: verbose("Tell all there is to tell."),
      streams: flag("Tell the streams, too."),
      latency: flag("Tell the latency, too."),
      direction: flag("Tell who opened it, too."),
    },
    returns: value(fields("connInfos", { Peers: nullable([connInfo]) })),
    async run({ lowLevel: node, options: { verbose: everything, ...options } }) {
      const peers = await peersOf(node);
      const wants = (option: boolean | undefined) => everything === true || option === true;
      const { latency, direction, streams } = options;
      const show = { latency: wants(latency), direction: wants(direction), streams: wants(streams) };
      return { Peers: orNull(peers.connections().map((connection) => shownPeer(peers, connection, show))) };
    },
    text: ({ Peers: peers }) => (peers ?? []).map(peerLine).join(""),
  }),
} satisfies Commands;

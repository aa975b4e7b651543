/** Streams to peers, mounted as local sockets. */

import type { P2p } from "../../mod_node/network/p2p/p2p.ts";
import { parseMultiaddr } from "../../mod_node/network/swarm/multiaddr.ts";
import { type NamedPeer, resolvePeers } from "../../mod_node/network/swarm/resolve_peers.ts";
import { NodeError } from "../../mod_node/util/errors.ts";
import { quote } from "../../mod_node/util/go/text.ts";
import { columns } from "../rpc/columns.ts";
import {
  type AnyCall,
  type Argument,
  type Commands,
  defineCommand,
  defineGroup,
  nothing,
  type Option,
  value,
} from "../rpc/command.ts";
import { fields, nullable } from "../rpc/shape.ts";
import { orNull } from "./shapes.ts";

const argument = <const N extends string>(name: N, help: string) =>
  ({ name, required: true, help }) as const satisfies Argument;
const protocol = argument("protocol", "Name of the protocol, such as `/x/ssh`.");

const custom = { type: "bool", help: "Allow names outside of `/x/`." } as const satisfies Option;
const matching = (letter: string, help: string) =>
  ({ type: "string", aliases: [letter], help }) as const satisfies Option;
const headers = { type: "bool", aliases: ["v"], help: "Print a heading." } as const satisfies Option;

const needs = "Experimental.Libp2pStreamMounting";

/** @throws NodeError while the experiment is off, then while the node is offline */
async function mountsOf({ lowLevel: node }: Pick<AnyCall, "lowLevel">): Promise<P2p> {
  if (!node.repo.config.value(needs)) {
    throw new NodeError("libp2p stream mounting not enabled");
  }
  return (await node.network()).p2p;
}

/** @throws NodeError when the address may mean more than one */
async function onePeer(text: string, signal: AbortSignal): Promise<NamedPeer> {
  const [first, second] = await resolvePeers([text], signal);
  if (first === undefined) throw new NodeError(`found no ipfs peers at ${text}`);
  if (second !== undefined) {
    throw new NodeError(`ambiguous multiaddr ${text} could refer to ${first.id} or ${second.id}`);
  }
  return first;
}

/** @throws NodeError with Go's text */
function streamId(text: string): bigint {
  const failed = (reason: string) => new NodeError(`strconv.ParseUint: parsing ${quote(text)}: ${reason}`);
  if (!/^\d+$/.test(text)) throw failed("invalid syntax");
  const id = BigInt(text);
  if (id >= 2n ** 64n) throw failed("value out of range");
  return id;
}

/** The heading stands before every row, as in the reference. */
const table = (rows: readonly (readonly string[])[], heading: readonly string[], isAsked: boolean | undefined) =>
  columns(isAsked === true ? rows.flatMap((row) => [heading, row]) : rows, 2);

export const commands = {
  p2p: defineGroup({ help: "Carry local connections over streams to peers.", experimental: true }),
  "p2p/close": defineCommand({
    help: "Stops listeners, and tells how many; one of the options is needed.",
    needs,
    example: { all: "true" },
    options: {
      all: { type: "bool", aliases: ["a"], help: "Stop all of them." },
      protocol: matching("p", "Stop those of this protocol."),
      "listen-address": matching("l", "Stop those that listen here."),
      "target-address": matching("t", "Stop those that lead here."),
    },
    returns: value("int"),
    async run(call) {
      const mounts = await mountsOf(call);
      const { all, protocol: name, "listen-address": listen, "target-address": target } = call.options;
      const isFiltered = name !== undefined || listen !== undefined || target !== undefined;
      if (all !== true && !isFiltered) throw new NodeError("no matching options given");
      if (all === true && isFiltered) throw new NodeError("can't combine --all with other matching options");
      return mounts.close({
        protocol: name,
        listen: listen === undefined ? undefined : parseMultiaddr(listen),
        target: target === undefined ? undefined : parseMultiaddr(target),
      });
    },
    text: (closed) => `Closed ${closed} stream(s)\n`,
  }),
  "p2p/forward": defineCommand({
    help: "Listens here, and carries connections to a peer.",
    needs,
    arguments: [
      protocol,
      argument("listen-address", "Where to listen, a multiaddress."),
      argument("target-address", "The peer, such as `/p2p/<peer ID>`."),
    ],
    options: { "allow-custom-protocol": custom },
    returns: nothing,
    async run(call) {
      const mounts = await mountsOf(call);
      const { protocol: name, "listen-address": listen, "target-address": target } = call.arguments;
      const address = parseMultiaddr(listen);
      const peer = await onePeer(target, call.signal);
      await mounts.forward(name, address, peer, { custom: call.options["allow-custom-protocol"] === true });
    },
  }),
  "p2p/listen": defineCommand({
    help: "Takes streams from peers, and carries them to an address here.",
    needs,
    arguments: [protocol, argument("target-address", "Where to connect to, a multiaddress.")],
    options: {
      "allow-custom-protocol": custom,
      "report-peer-id": { type: "bool", aliases: ["r"], help: "Send the peer's ID first, on a line of its own." },
    },
    returns: nothing,
    async run(call) {
      const mounts = await mountsOf(call);
      const { protocol: name, "target-address": target } = call.arguments;
      await mounts.listen(name, parseMultiaddr(target), {
        custom: call.options["allow-custom-protocol"] === true,
        reportPeer: call.options["report-peer-id"] === true,
      });
    },
  }),
  "p2p/ls": defineCommand({
    help: "Lists the listeners.",
    needs,
    options: { headers },
    returns: value(
      fields("P2PLsOutput", {
        Listeners: nullable([
          fields("P2PListenerInfoOutput", { Protocol: "string", ListenAddress: "string", TargetAddress: "string" }),
        ]),
      }),
    ),
    async run(call) {
      const listeners = (await mountsOf(call)).list().map((mount) => ({
        Protocol: mount.protocol,
        ListenAddress: mount.listen,
        TargetAddress: mount.target,
      }));
      return { Listeners: orNull(listeners) };
    },
    text({ Listeners }, { options }) {
      const rows = (Listeners ?? []).map((mount) => [mount.Protocol, mount.ListenAddress, mount.TargetAddress]);
      return table(rows, ["Protocol", "Listen Address", "Target Address"], options.headers);
    },
  }),
  "p2p/stream": defineGroup({ help: "Look after the streams that are open.", experimental: true }),
  "p2p/stream/close": defineCommand({
    help: "Closes streams.",
    needs,
    example: { all: "true" },
    arguments: [{ name: "id", help: "Number of the stream; needed without `all`." }],
    options: { all: { type: "bool", aliases: ["a"], help: "Close all of them." } },
    returns: nothing,
    async run(call) {
      const mounts = await mountsOf(call);
      const { id } = call.arguments;
      if (call.options.all === true) return mounts.closeStreams();
      if (id === undefined) throw new NodeError("no id specified");
      return mounts.closeStreams(streamId(id));
    },
  }),
  "p2p/stream/ls": defineCommand({
    help: "Lists the streams.",
    needs,
    options: { headers },
    returns: value(
      fields("P2PStreamsOutput", {
        Streams: nullable([
          fields("P2PStreamInfoOutput", {
            HandlerID: "string",
            Protocol: "string",
            OriginAddress: "string",
            TargetAddress: "string",
          }),
        ]),
      }),
    ),
    async run(call) {
      const streams = (await mountsOf(call)).streams().map((stream) => ({
        HandlerID: stream.id.toString(),
        Protocol: stream.protocol,
        OriginAddress: stream.origin,
        TargetAddress: stream.target,
      }));
      return { Streams: orNull(streams) };
    },
    text({ Streams }, { options }) {
      const rows = (Streams ?? []).map((stream) => [
        stream.HandlerID,
        stream.Protocol,
        stream.OriginAddress,
        stream.TargetAddress,
      ]);
      return table(rows, ["ID", "Protocol", "Origin", "Target"], options.headers);
    },
  }),
} satisfies Commands;

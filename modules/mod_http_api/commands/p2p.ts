/** `p2p`: streams to peers, forwarded to and from local sockets. */
import { once } from "node:events";
import type { P2pListener } from "modhost/node";
import { columns } from "../rpc/columns.ts";
import {
  type AnyCall,
  type Argument,
  type Commands,
  defineGroup,
  nothing,
  type Option,
  type Options,
  readCommand,
  stream,
  value,
  writeCommand,
} from "../rpc/command.ts";
import { fields, nullable, type ValueOf } from "../rpc/shape.ts";
import { orNull, wireNames } from "./shapes.ts";

const argument = <const N extends string>(name: N, help: string) =>
  ({ name, required: true, help }) as const satisfies Argument;
const protocol = argument("protocol", "Name of the protocol, such as `/x/ssh`.");

const custom = { type: "bool", help: "Allow protocol names that do not begin with `/x/`." } as const satisfies Option;
const matching = (letter: string, help: string) =>
  ({ type: "string", aliases: [letter], help }) as const satisfies Option;
const headers = { type: "bool", aliases: ["v"], help: "Print column headings." } as const satisfies Option;

const foreground = {
  foreground: {
    type: "bool",
    aliases: ["f"],
    help: "Keep the response open, and stop listening when the client disconnects.",
  },
} as const satisfies Options;

const state = stream(fields("P2PForegroundOutput", { Status: "string", Protocol: "string", Address: "string" }));
type State = ValueOf<typeof state.shape>;

const stateText = ({ Status, Protocol, Address }: State) => `${Status} ${Protocol} ${Address}\n`;

/** Reports once that the listener is active, and closes it when the client disconnects. */
async function* untilLeft({ node, signal }: Pick<AnyCall, "node" | "signal">, listener: P2pListener, address: string) {
  try {
    yield { Status: "active", Protocol: listener.protocol, Address: address };
    if (!signal.aborted) await once(signal, "abort");
  } finally {
    await node.p2p.close(listener);
  }
}

async function* noValues(): AsyncGenerator<State, void, undefined> {
  // The command has no output.
}

const forwardArguments = [
  protocol,
  argument("listen-address", "Where to listen, a multiaddress."),
  argument("target-address", "The peer, such as `/p2p/<peer ID>`."),
] as const;
const listenArguments = [protocol, argument("target-address", "Where to connect to, a multiaddress.")] as const;
const listenOptions = {
  "allow-custom-protocol": custom,
  "report-peer-id": { type: "bool", aliases: ["r"], help: "Send the peer's ID as the first line." },
} as const satisfies Options;

const needs = "Experimental.Libp2pStreamMounting";

/** Like go-ipfs, prints the heading before every row. */
const table = (rows: readonly (readonly string[])[], heading: readonly string[], showHeading: boolean | undefined) =>
  columns(showHeading === true ? rows.flatMap((row) => [heading, row]) : rows, 2);

export const commands = {
  p2p: defineGroup({ help: "Forward local connections through streams to peers.", experimental: true }),
  "p2p/close": writeCommand({
    help: "Stops listeners and returns their number; one of the options is required.",
    needs,
    example: { all: "true" },
    options: {
      all: { type: "bool", aliases: ["a"], help: "Stop all listeners." },
      protocol: matching("p", "Stop listeners for this protocol."),
      "listen-address": matching("l", "Stop listeners at this address."),
      "target-address": matching("t", "Stop listeners that forward to this address."),
    },
    returns: value("int"),
    async run({
      node,
      options: { all, protocol: name, "listen-address": listenAddress, "target-address": targetAddress },
    }) {
      return node.p2p.close({ all, protocol: name, listenAddress, targetAddress });
    },
    text: (closed) => `Closed ${closed} stream(s)\n`,
  }),
  "p2p/forward": writeCommand({
    help: "Listens on a local address and forwards connections to a peer.",
    needs,
    arguments: forwardArguments,
    options: { "allow-custom-protocol": custom },
    returns: nothing,
    async run({ node, arguments: args, options: { "allow-custom-protocol": allowCustomProtocol }, signal }) {
      const { protocol: name, "listen-address": listen, "target-address": target } = args;
      await node.p2p.forward(name, listen, target, { allowCustomProtocol, signal });
    },
  }),
  "p2p/listen": writeCommand({
    help: "Accepts streams from peers and forwards them to a local address.",
    needs,
    arguments: listenArguments,
    options: listenOptions,
    returns: nothing,
    async run({ node, arguments: { protocol: name, "target-address": target }, options }) {
      const { "allow-custom-protocol": allowCustomProtocol, "report-peer-id": reportPeerId } = options;
      await node.p2p.listen(name, target, { allowCustomProtocol, reportPeerId });
    },
  }),
  "p2p/ls": readCommand({
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
    run: async ({ node }) => ({ Listeners: orNull((await node.p2p.ls()).map(wireNames)) }),
    text({ Listeners }, { options }) {
      const rows = (Listeners ?? []).map((mount) => [mount.Protocol, mount.ListenAddress, mount.TargetAddress]);
      return table(rows, ["Protocol", "Listen Address", "Target Address"], options.headers);
    },
  }),
  "p2p/stream": defineGroup({ help: "Manage the open streams.", experimental: true }),
  "p2p/stream/close": writeCommand({
    help: "Closes streams.",
    needs,
    example: { all: "true" },
    arguments: [{ name: "id", help: "Number of the stream; required unless `all` is set." }],
    options: { all: { type: "bool", aliases: ["a"], help: "Close all streams." } },
    returns: nothing,
    run: ({ node, arguments: { id }, options }) => node.p2p.stream.close(id, options),
  }),
  "p2p/stream/ls": readCommand({
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
    run: async ({ node }) => ({ Streams: orNull((await node.p2p.stream.ls()).map(wireNames)) }),
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

export const kubo043 = {
  "p2p/forward": writeCommand({
    help: "Listens on a local address and forwards connections to a peer.",
    needs,
    arguments: forwardArguments,
    options: { "allow-custom-protocol": custom, ...foreground },
    returns: state,
    async run({ node, arguments: args, options, signal }) {
      const { protocol: name, "listen-address": listen, "target-address": target } = args;
      const allowCustomProtocol = options["allow-custom-protocol"];
      const listener = await node.p2p.forward(name, listen, target, { allowCustomProtocol, signal });
      return options.foreground === true ? untilLeft({ node, signal }, listener, listener.listenAddress) : noValues();
    },
    text: stateText,
  }),
  "p2p/listen": writeCommand({
    help: "Accepts streams from peers and forwards them to a local address.",
    needs,
    arguments: listenArguments,
    options: { ...listenOptions, ...foreground },
    returns: state,
    async run({ node, arguments: { protocol: name, "target-address": target }, options, signal }) {
      const { "allow-custom-protocol": allowCustomProtocol, "report-peer-id": reportPeerId } = options;
      const listener = await node.p2p.listen(name, target, { allowCustomProtocol, reportPeerId });
      return options.foreground === true ? untilLeft({ node, signal }, listener, listener.targetAddress) : noValues();
    },
    text: stateText,
  }),
} satisfies Commands;

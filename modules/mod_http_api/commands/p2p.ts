/** Streams to peers, mounted as local sockets. */
import { type Argument, defineGroup, nothing, type Option, value } from "../command.ts";
import { fields } from "../shape.ts";
import { later } from "./later.ts";

const argument = (name: string, help: string): Argument => ({ name, required: true, help });
const protocol = argument("protocol", "Name of the protocol, such as `/x/ssh`.");

const custom: Option = { type: "bool", help: "Allow names outside of `/x/`." };
const matching = (letter: string, help: string): Option => ({ type: "string", aliases: [letter], help });
const headers: Option = { type: "bool", aliases: ["v"], help: "Print a heading." };

export const commands = later({
  p2p: defineGroup({ help: "Carry local connections over streams to peers.", experimental: true }),
  "p2p/close": {
    help: "Stops listeners, and tells how many.",
    options: {
      all: { type: "bool", aliases: ["a"], help: "Stop all of them." },
      protocol: matching("p", "Stop those of this protocol."),
      "listen-address": matching("l", "Stop those that listen here."),
      "target-address": matching("t", "Stop those that lead here."),
    },
    returns: value("int"),
  },
  "p2p/forward": {
    help: "Listens here, and carries connections to a peer.",
    arguments: [
      protocol,
      argument("listen-address", "Where to listen, a multiaddress."),
      argument("target-address", "The peer, such as `/p2p/<peer ID>`."),
    ],
    options: { "allow-custom-protocol": custom },
    returns: nothing,
  },
  "p2p/listen": {
    help: "Takes streams from peers, and carries them to an address here.",
    arguments: [protocol, argument("target-address", "Where to connect to, a multiaddress.")],
    options: {
      "allow-custom-protocol": custom,
      "report-peer-id": { type: "bool", aliases: ["r"], help: "Send the peer's ID first, on a line of its own." },
    },
    returns: nothing,
  },
  "p2p/ls": {
    help: "Lists the listeners.",
    options: { headers },
    returns: value(
      fields("P2PLsOutput", {
        Listeners: [
          fields("P2PListenerInfoOutput", { Protocol: "string", ListenAddress: "string", TargetAddress: "string" }),
        ],
      }),
    ),
  },
  "p2p/stream": defineGroup({ help: "Look after the streams that are open.", experimental: true }),
  "p2p/stream/close": {
    help: "Closes streams.",
    arguments: [{ name: "id", help: "Number of the stream." }],
    options: { all: { type: "bool", aliases: ["a"], help: "Close all of them." } },
    returns: nothing,
  },
  "p2p/stream/ls": {
    help: "Lists the streams.",
    options: { headers },
    returns: value(
      fields("P2PStreamsOutput", {
        Streams: [
          fields("P2PStreamInfoOutput", {
            HandlerID: "string",
            Protocol: "string",
            OriginAddress: "string",
            TargetAddress: "string",
          }),
        ],
      }),
    ),
  },
});

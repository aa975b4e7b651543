/** Connections to peers. */
import { type Argument, defineGroup, type Option, stream, value } from "../command.ts";
import { fields, map } from "../shape.ts";
import { type Later, later } from "./later.ts";
import { stringList, verbose } from "./shapes.ts";

const addresses = (help: string): readonly Argument[] => [
  { name: "address", required: true, variadic: true, stdin: "first", help },
];

const lists = (help: string, rest: Pick<Later, "arguments" | "options"> = {}): Later => ({
  help,
  ...rest,
  returns: value(stringList),
});

const flag = (help: string): Option => ({ type: "bool", help });

export const commands = later({
  ping: {
    help: "Sends echo requests to a peer.",
    arguments: [
      {
        name: "peer ID",
        required: true,
        variadic: true,
        stdin: "first",
        help: "The peer; further ones are not looked at.",
      },
    ],
    options: { count: { type: "int", aliases: ["n"], default: 10, help: "Number of requests." } },
    returns: stream(fields("PingResult", { Success: "bool", Time: "duration", Text: "string" })),
  },
  swarm: defineGroup({ help: "Look after the connections to peers." }),
  "swarm/addrs": {
    help: "Lists the known addresses of all known peers.",
    returns: value(fields("addrMap", { Addrs: map(["string"]) })),
  },
  "swarm/addrs/listen": lists("Lists the addresses that the node listens on."),
  "swarm/addrs/local": lists("Lists the addresses that the node tells others.", {
    options: { id: flag("Append the peer ID.") },
  }),
  "swarm/connect": lists("Connects to peers.", {
    arguments: addresses("The peers, as `<multiaddr>/p2p/<peer ID>`."),
  }),
  "swarm/disconnect": lists("Closes the connections to peers.", {
    arguments: addresses("The peers, as `<multiaddr>/p2p/<peer ID>`, or `/p2p/<peer ID>`."),
  }),
  "swarm/filters": lists("Lists the address ranges that are refused."),
  "swarm/filters/add": lists("Refuses address ranges.", {
    arguments: addresses("The ranges, such as `/ip4/192.168.0.0/ipcidr/16`."),
  }),
  "swarm/filters/rm": lists("Refuses address ranges no longer.", {
    arguments: addresses("The ranges; `all` for all of them."),
  }),
  "swarm/peers": {
    help: "Lists the open connections.",
    options: {
      verbose: verbose("Tell all there is to tell."),
      streams: flag("Tell the streams, too."),
      latency: flag("Tell the latency, too."),
      direction: flag("Tell who opened it, too."),
    },
    returns: value(
      fields("connInfos", {
        Peers: [
          fields("connInfo", {
            Addr: "string",
            Peer: "string",
            Latency: "string",
            Muxer: "string",
            Direction: "int",
            Streams: [fields("streamInfo", { Protocol: "string" })],
          }),
        ],
      }),
    ),
  },
});

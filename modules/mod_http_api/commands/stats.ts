/** Figures. */
import { defineGroup, stream, value } from "../command.ts";
import { fields } from "../shape.ts";
import { later } from "./later.ts";
import { bitswapStat, human, verbose } from "./shapes.ts";

const peer = fields("dhtPeerInfo", {
  ID: "string",
  Connected: "bool",
  AgentVersion: "string",
  LastUsefulAt: "string",
  LastQueriedAt: "string",
});

export const commands = later({
  stats: defineGroup({ help: "Tell figures of the node." }),
  "stats/bitswap": {
    offline: "client",
    help: "Tells what the block exchange has done and is asking for.",
    options: { verbose: verbose("Print the peers, too."), human },
    returns: value(bitswapStat),
  },
  "stats/bw": {
    offline: "client",
    help: "Tells how many bytes came and went.",
    options: {
      peer: { type: "string", aliases: ["p"], help: "Only those of this peer." },
      proto: { type: "string", aliases: ["t"], help: "Only those of this protocol." },
      poll: { type: "bool", help: "Go on telling." },
      interval: {
        type: "string",
        aliases: ["i"],
        default: "1s",
        help: 'With `poll`, time from one to the next, such as "300s", "1.5h" or "2h45m".',
      },
    },
    returns: stream(fields("Stats", { TotalIn: "int64", TotalOut: "int64", RateIn: "float64", RateOut: "float64" })),
  },
  "stats/dht": {
    offline: "failure",
    help: "Lists the tables of the routing system.",
    arguments: [
      {
        name: "dht",
        variadic: true,
        help: "The tables: `wanserver`, `lanserver`, `wan`, `lan`; by default `wan` and `lan`.",
      },
    ],
    returns: stream(
      fields("dhtStat", {
        Name: "string",
        Buckets: [fields("dhtBucket", { LastRefresh: "string", Peers: [peer] })],
      }),
    ),
  },
  "stats/provide": {
    offline: "failure",
    help: "Tells how announcing to the routing system goes.",
    returns: stream(
      fields("provideStats", {
        TotalProvides: "int",
        LastReprovideBatchSize: "int",
        AvgProvideDuration: "duration",
        LastReprovideDuration: "duration",
      }),
    ),
  },
});

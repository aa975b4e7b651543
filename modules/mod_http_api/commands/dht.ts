/** The routing system. */
import { type Argument, defineGroup, stream } from "../command.ts";
import { fields } from "../shape.ts";
import { later } from "./later.ts";
import { verbose as verboseOption } from "./shapes.ts";

const returns = stream(
  fields("QueryEvent", {
    Extra: "string",
    ID: "string",
    Responses: [fields("AddrInfo", { ID: "string", Addrs: ["string"] })],
    Type: "int",
  }),
);

const verbose = verboseOption("Print what happens on the way, too.");

const several = (name: string, help: string): readonly Argument[] => [{ name, required: true, variadic: true, help }];

export const commands = later({
  dht: defineGroup({ help: "Ask the routing system." }),
  "dht/findpeer": {
    help: "Finds the addresses of a peer.",
    arguments: several("peerID", "The peer's ID; further ones are not looked at."),
    options: { verbose },
    returns,
  },
  "dht/findprovs": {
    help: "Finds peers that provide a block.",
    arguments: several("key", "CID of the block; further ones are not looked at."),
    options: {
      verbose,
      "num-providers": { type: "int", aliases: ["n"], default: 20, help: "Number of providers to find." },
    },
    returns,
  },
  "dht/get": {
    help: "Gets the best record of a key.",
    arguments: several("key", "The key, `/ipns/<name>` or `/pk/<peer ID>`; further ones are not looked at."),
    options: { verbose },
    returns,
  },
  "dht/provide": {
    help: "Announces that blocks can be had here.",
    arguments: [{ name: "key", required: true, variadic: true, stdin: "lines", help: "CIDs of the blocks." }],
    options: {
      verbose,
      recursive: { type: "bool", aliases: ["r"], help: "Announce all that they link to, too." },
    },
    returns,
  },
  "dht/put": {
    help: "Writes the record of a key.",
    arguments: [{ name: "key", required: true, help: "The key, `/ipns/<name>` or `/pk/<peer ID>`." }],
    options: { verbose },
    file: { name: "value-file", required: true, help: "The record." },
    returns,
  },
  "dht/query": {
    help: "Finds the peers that are nearest to an ID.",
    arguments: several("peerID", "The ID; further ones are not looked at."),
    options: { verbose },
    returns,
  },
});

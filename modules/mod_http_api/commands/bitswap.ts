/** The block exchange agent. */
import { defineGroup, nothing, value } from "../command.ts";
import { fields } from "../shape.ts";
import { later } from "./later.ts";
import { bitswapStat, human, verbose } from "./shapes.ts";

export const commands = later({
  bitswap: defineGroup({ help: "Look into the block exchange agent." }),
  "bitswap/ledger": {
    offline: "failure",
    help: "Tells what was exchanged with a peer.",
    arguments: [{ name: "peer", required: true, help: "The peer's ID, in base58." }],
    returns: value(
      fields("Receipt", { Peer: "string", Value: "float64", Sent: "uint64", Recv: "uint64", Exchanged: "uint64" }),
    ),
  },
  "bitswap/reprovide": {
    offline: "failure",
    help: "Announces to the routing system what is stored here.",
    returns: nothing,
  },
  "bitswap/stat": {
    offline: "client",
    help: "Tells what the block exchange has done and is asking for.",
    options: { verbose: verbose("Print the peers, too."), human },
    returns: value(bitswapStat),
  },
  "bitswap/wantlist": {
    offline: "failure",
    help: "Lists the blocks that are wanted.",
    options: { peer: { type: "string", aliases: ["p"], help: "The peer whose wants are listed; by default our own." } },
    returns: value(fields("KeyList", { Keys: ["link"] })),
  },
});

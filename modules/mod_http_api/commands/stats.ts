/** Figures. */
import { type Commands, defineGroup } from "../rpc/command.ts";
import { bandwidth } from "./bandwidth.ts";
import { stat } from "./bitswap.ts";
import { announcing, routingTables } from "./dht_stats.ts";

export const commands = {
  stats: defineGroup({ help: "Tell figures of the node." }),
  "stats/bitswap": stat,
  "stats/bw": bandwidth,
  "stats/dht": routingTables,
  "stats/provide": announcing,
} satisfies Commands;

/** The routing system, under the name that it has since Kubo took `dht` away. */
import type { Command, Commands } from "../rpc/command.ts";
import { defineGroup, nothing, writeCommand } from "../rpc/command.ts";
import { commands as dht, findPeer, findProviders, provide, putToday } from "./dht.ts";

const since = "0.43";
const dated = (command: Command): Command => ({ ...command, since });

export const commands = {
  routing: defineGroup({ help: "Find peers, providers and records, and announce blocks.", since }),
  "routing/findpeer": dated(findPeer(true)),
  "routing/findprovs": dated(findProviders(true)),
  "routing/get": dated(dht["dht/get"]),
  "routing/provide": dated(provide(true)),
  "routing/put": dated(putToday),
  "routing/reprovide": writeCommand({
    help: "Announces the stored blocks to the routing system again.",
    since,
    returns: nothing,
    run: ({ node, signal }) => node.provide.reprovide({ signal }),
  }),
} satisfies Commands;

/** `routing`: the name of the routing commands in Kubo, which has removed `dht`. */
import type { Command, Commands } from "../rpc/command.ts";
import { defineGroup, nothing, writeCommand } from "../rpc/command.ts";
import { findPeer, findProviders, getKubo043, provide, putKubo043 } from "./dht.ts";

const since = "0.43";
const dated = (command: Command): Command => ({ ...command, since });

export const commands = {
  routing: defineGroup({ help: "Find peers, providers and records, and announce blocks.", since }),
  "routing/findpeer": dated(findPeer(true)),
  "routing/findprovs": dated(findProviders(true)),
  "routing/get": dated(getKubo043),
  "routing/provide": dated(provide(true)),
  "routing/put": dated(putKubo043),
  "routing/reprovide": writeCommand({
    help: "Announces the stored blocks to the routing system again.",
    since,
    returns: nothing,
    run: ({ node, signal }) => node.provide.reprovide({ signal }),
  }),
} satisfies Commands;

/** How many bytes came and went. */
import { setTimeout as delay } from "node:timers/promises";
import { parsePeerId } from "../../mod_node/formats/peer_id.ts";
import type { BandwidthStats } from "../../mod_node/network/swarm/bandwidth.ts";
import { NodeError } from "../../mod_node/util/errors.ts";
import { parseDuration } from "../../mod_node/util/go/duration.ts";
import { defineCommand, stream } from "../rpc/command.ts";
import { fields } from "../rpc/shape.ts";

/** Milliseconds from one to the next at least. */
const leastInterval = 10;

async function* polled(read: () => BandwidthStats, interval: number, signal: AbortSignal) {
  for (;;) {
    yield read();
    await delay(Math.max(interval, leastInterval), undefined, { signal });
  }
}

async function* once(read: () => BandwidthStats) {
  yield read();
}

export const bandwidth = defineCommand({
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
  async run({ lowLevel: node, options: { peer, proto, poll, interval }, signal }) {
    const { bandwidth: counted } = (await node.network("client")).swarm;
    if (counted === undefined) throw new NodeError("bandwidth reporter disabled in config");
    if (peer !== undefined && proto !== undefined) {
      throw new NodeError("please only specify peer OR protocol", { kind: "client" });
    }
    const id = peer === undefined ? undefined : parsePeerId(peer);
    const milliseconds = parseDuration(interval);
    const read = () => {
      if (id !== undefined) return counted.peer(id);
      return proto === undefined ? counted.total() : counted.protocol(proto);
    };
    return poll === true ? polled(read, milliseconds, signal) : once(read);
  },
});

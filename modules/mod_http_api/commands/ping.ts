/** Whether and how fast a peer answers. */
import { setTimeout as delay } from "node:timers/promises";
import { parsePeerId } from "../../mod_node/formats/peer_id.ts";
import { type PeerAddress, parseMultiaddr, splitPeer } from "../../mod_node/network/swarm/multiaddr.ts";
import type { PingStream } from "../../mod_node/network/swarm/ping.ts";
import type { Swarm } from "../../mod_node/network/swarm/swarm.ts";
import { NodeError } from "../../mod_node/util/errors.ts";
import { type Commands, defineCommand, stream } from "../rpc/command.ts";
import { fields, type ValueOf } from "../rpc/shape.ts";

/** Milliseconds: for a look-up, for each echo, and from one to the next. */
const times = { lookUp: 10_000, echo: 10_000, pause: 1000 };

const pingResult = fields("PingResult", {
  Success: "bool",
  /** There and back; 0 where the object only says something. */
  Time: "duration",
  Text: "string",
});
type PingResult = ValueOf<typeof pingResult>;

const said = (Text: string): PingResult => ({ Success: true, Time: 0, Text });
const failed = (error: unknown): PingResult => ({
  Success: false,
  Time: 0,
  Text: `Ping error: ${(error as Error).message}`,
});

function target(text: string): PeerAddress {
  try {
    return text.startsWith("/") ? splitPeer(parseMultiaddr(text)) : { id: parsePeerId(text), address: undefined };
  } catch (error) {
    throw new NodeError(`failed to parse peer address '${text}': ${(error as Error).message}`, { cause: error });
  }
}

async function* ping(peers: Swarm, { id, address }: PeerAddress, count: number, caller: AbortSignal) {
  const known = [...(address === undefined ? [] : [address]), ...(await peers.addresses(id))];
  if (known.length === 0 && peers.connections(id).length === 0) {
    yield said(`Looking up peer ${id}`);
    known.push(...(await lookUp(peers, id, caller)));
  }
  yield said(`PING ${id}.`);
  const signal = AbortSignal.any([caller, AbortSignal.timeout(times.echo * count)]);
  let echo: PingStream;
  try {
    await peers.connect(id, known, signal);
    echo = await peers.ping.open(id, { signal });
  } catch (error) {
    caller.throwIfAborted();
    yield failed(error);
    throw new NodeError("ping failed", { cause: error });
  }
  try {
    yield* echoes(peers, id, echo, count, signal);
  } catch (error) {
    caller.throwIfAborted();
    throw signal.aborted ? new NodeError("context deadline exceeded", { cause: error }) : error;
  } finally {
    echo.close();
  }
}

async function lookUp(peers: Swarm, id: PeerAddress["id"], caller: AbortSignal) {
  try {
    return await peers.findAddresses(id, AbortSignal.any([caller, AbortSignal.timeout(times.lookUp)]));
  } catch (error) {
    caller.throwIfAborted();
    throw new NodeError(`peer lookup failed: ${(error as Error).message}`, { cause: error });
  }
}

async function* echoes(peers: Swarm, id: PeerAddress["id"], echo: PingStream, count: number, signal: AbortSignal) {
  let answered = 0;
  let total = 0;
  for (let left = count; left > 0; left--) {
    try {
      const milliseconds = await echo.ping(signal);
      peers.ping.latencies.record(id, milliseconds);
      answered += 1;
      total += milliseconds;
      yield { Success: true, Time: Math.round(milliseconds * 1e6), Text: "" };
    } catch (error) {
      signal.throwIfAborted();
      yield failed(error);
    }
    await delay(times.pause, undefined, { signal });
  }
  if (answered === 0) throw new NodeError("ping failed");
  yield said(`Average latency: ${(total / answered).toFixed(2)}ms`);
}

export const commands = {
  ping: defineCommand({
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
    returns: stream(pingResult),
    async run({ lowLevel: node, arguments: { "peer ID": given }, options: { count }, signal }) {
      const { swarm } = await node.network();
      const peer = target(given[0] as string);
      if (peer.id.equals(swarm.id)) throw new NodeError("error: can't ping self");
      if (count <= 0) throw new NodeError(`ping count must be greater than 0, was ${count}`);
      return ping(swarm, peer, count, signal);
    },
    text({ Success, Time, Text }) {
      if (Text !== "") return `${Text}\n`;
      return Success ? `Pong received: time=${(Time / 1e6).toFixed(2)} ms\n` : "Pong failed\n";
    },
  }),
} satisfies Commands;

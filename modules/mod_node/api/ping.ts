/** Measures the round-trip time to a peer. */
import { setTimeout as delay } from "node:timers/promises";
import { type PeerId, parsePeerId } from "../formats/peer_id.ts";
import { type PeerAddress, parseMultiaddr, splitPeer } from "../network/swarm/multiaddr.ts";
import type { PingStream } from "../network/swarm/ping.ts";
import type { Swarm } from "../network/swarm/swarm.ts";
import type { LowLevelNode } from "../node/low_level_node.ts";
import { failure } from "../util/errors.ts";
import { type Address, type CallOptions, callSignal, type PeerName } from "./common.ts";

export interface PingOptions extends CallOptions {
  /** Number of echo requests; 10 by default. */
  readonly count?: number | undefined;
}

export interface PingResult {
  readonly success: boolean;
  /** Round-trip time in nanoseconds; 0 if there is a `text`. */
  readonly time: number;
  /** Description of the current step, or of an error; empty for an echo. */
  readonly text: string;
}

/**
 * Connects to a peer and pings it once a second. Yields notes about the connection first, then each
 * echo, and the average last.
 *
 * @throws NodeError `ping failed` if no echo arrived; `peer lookup failed: …`
 */
export type PingApi = (peer: PeerName | Address, options?: PingOptions) => AsyncIterable<PingResult>;

/**
 * Timeouts in milliseconds for finding the peer and for each echo, and the pause between two
 * echoes.
 */
const LOOK_UP_TIMEOUT_MS = 10_000;
const ECHO_TIMEOUT_MS = 10_000;
const PAUSE_MS = 1000;

export function pingApi(node: LowLevelNode): PingApi {
  return async function* ping(given, { count = 10, ...options } = {}) {
    const { swarm } = await node.network();
    const peer = target(String(given));
    if (peer.id.equals(swarm.id)) throw failure("PEER_IS_SELF", { reason: "error: can't ping self" });
    if (count <= 0) throw failure("OPTION_INVALID", { reason: `ping count must be greater than 0, was ${count}` });
    yield* pings(swarm, peer, count, callSignal(options));
  };
}

const note = (text: string): PingResult => ({ success: true, time: 0, text });
const failed = (error: unknown): PingResult => ({
  success: false,
  time: 0,
  text: `Ping error: ${(error as Error).message}`,
});

function target(text: string): PeerAddress {
  try {
    return text.startsWith("/") ? splitPeer(parseMultiaddr(text)) : { id: parsePeerId(text), address: undefined };
  } catch (error) {
    throw failure(
      "ADDRESS_INVALID",
      { reason: `failed to parse peer address '${text}': ${(error as Error).message}` },
      error,
    );
  }
}

async function* pings(swarm: Swarm, { id, address }: PeerAddress, count: number, caller: AbortSignal) {
  const given = address === undefined ? [] : [address];
  if (given.length === 0 && (await swarm.addresses(id)).length === 0 && swarm.connections(id).length === 0) {
    yield note(`Looking up peer ${id}`);
    await lookUp(swarm, id, caller);
  }
  yield note(`PING ${id}.`);
  const signal = AbortSignal.any([caller, AbortSignal.timeout(ECHO_TIMEOUT_MS * count)]);
  let stream: PingStream;
  try {
    await swarm.connect(id, given, signal);
    stream = await swarm.ping.open(id, { signal });
  } catch (error) {
    caller.throwIfAborted();
    yield failed(error);
    throw failure("PEER_UNREACHABLE", { reason: "ping failed" }, error);
  }
  try {
    yield* echoes(swarm, id, stream, count, signal);
  } catch (error) {
    caller.throwIfAborted();
    throw signal.aborted ? failure("DEADLINE_EXCEEDED", undefined, error) : error;
  } finally {
    stream.close();
  }
}

/** Looks up the peer, so that the address book has its addresses afterwards. */
async function lookUp(swarm: Swarm, id: PeerId, caller: AbortSignal): Promise<void> {
  try {
    await swarm.findAddresses(id, AbortSignal.any([caller, AbortSignal.timeout(LOOK_UP_TIMEOUT_MS)]));
  } catch (error) {
    caller.throwIfAborted();
    throw failure("PEER_UNREACHABLE", { reason: `peer lookup failed: ${(error as Error).message}` }, error);
  }
}

async function* echoes(swarm: Swarm, id: PeerId, stream: PingStream, count: number, signal: AbortSignal) {
  let echoCount = 0;
  let total = 0;
  for (let left = count; left > 0; left--) {
    try {
      const milliseconds = await stream.ping(signal);
      swarm.ping.latencies.record(id, milliseconds);
      echoCount += 1;
      total += milliseconds;
      yield { success: true, time: Math.round(milliseconds * 1e6), text: "" };
    } catch (error) {
      signal.throwIfAborted();
      yield failed(error);
    }
    await delay(PAUSE_MS, undefined, { signal });
  }
  if (echoCount === 0) throw failure("PEER_UNREACHABLE", { reason: "ping failed" });
  yield note(`Average latency: ${(total / echoCount).toFixed(2)}ms`);
}

/**
 * Bounds DHT messages, and what one response may name. The library takes messages of four megabytes, which it decodes in
 * one piece, announces every peer in a response and dials them all: one response could make work for minutes.
 */
import type { Stream } from "@libp2p/interface";
import type { Patch, PatchNotices } from "../../swarm/patches/notices.ts";
import { withOverrides } from "../../swarm/patches/with_overrides.ts";
import { boundsOfStream } from "../message_bounds.ts";

export const patch: Patch = {
  library: "@libp2p/kad-dht",
  version: "16.4.5",
  without: "what one DHT message may hold is not bounded",
};

interface Response {
  readonly closer: readonly NamedPeer[];
  readonly providers: readonly NamedPeer[];
}

interface NamedPeer {
  readonly multiaddrs: readonly Uint8Array[];
}

/** What is used of the library's `network`, which reads responses and announces the peers in them. */
export interface KadNetwork {
  safeDispatchEvent(name: string, event: object): boolean;
  _writeReadMessage(stream: Stream, message: unknown, options: unknown): Promise<Response>;
}

/** What is used of the library's `rpc`, which answers the requests of others. */
export interface KadRpc {
  onIncomingStream(stream: Stream, connection: unknown): Promise<void>;
}

/** Peers close to the key in one response; an honest one names twenty. */
const MAX_CLOSER = 20;
const MAX_PROVIDERS = 256;
/** Addresses of each peer. */
const MAX_ADDRESSES = 128;

/**
 * Takes the first peers of each response and leaves out the rest; a message beyond the bounds resets its stream. To be
 * called before the DHT starts.
 */
export function limitMessages(kad: object, notices: PatchNotices): void {
  const { network, rpc } = kad as { readonly network?: Partial<KadNetwork>; readonly rpc?: Partial<KadRpc> };
  const { _writeReadMessage: read, safeDispatchEvent } = network ?? {};
  const { onIncomingStream: answer } = rpc ?? {};
  const parts = {
    "network._writeReadMessage": read,
    "network.safeDispatchEvent": safeDispatchEvent,
    "rpc.onIncomingStream": answer,
  };
  if (!notices.isApplicable(patch, parts) || network === undefined || read === undefined) return;
  if (rpc !== undefined && answer !== undefined) {
    rpc.onIncomingStream = (stream, connection) =>
      withinBounds(stream, () => answer.call(rpc as KadRpc, stream, connection));
  }
  const whole = network as KadNetwork;
  whole._writeReadMessage = async (stream, message, options) => {
    let left = MAX_CLOSER + MAX_PROVIDERS;
    const bounded = withOverrides(whole, {
      safeDispatchEvent: (name: string, event: object) => left-- > 0 && whole.safeDispatchEvent(name, event),
    });
    const { closer, providers, ...rest } = await withinBounds(stream, () =>
      read.call(bounded, stream, message, options),
    );
    return { ...rest, closer: firstOf(closer, MAX_CLOSER), providers: firstOf(providers, MAX_PROVIDERS) };
  };
}

const firstOf = (peers: readonly NamedPeer[], count: number): NamedPeer[] =>
  peers.slice(0, count).map((peer) => ({ ...peer, multiaddrs: peer.multiaddrs.slice(0, MAX_ADDRESSES) }));

/** A stream with a message beyond the bounds is reset before the message is decoded. */
async function withinBounds<T>(stream: Stream, work: () => Promise<T>): Promise<T> {
  const look = boundsOfStream();
  const listener = ({ data }: { readonly data: Uint8Array | Iterable<Uint8Array> }) => {
    try {
      look(data);
    } catch (error) {
      stream.abort(error as Error);
    }
  };
  stream.addEventListener("message", listener);
  try {
    return await work();
  } finally {
    stream.removeEventListener("message", listener);
  }
}

/**
 * Bounds what one DHT response may name. The library takes a response of any length, announces every peer in it and
 * dials them all: one response could make work for minutes.
 */
import type { Stream } from "@libp2p/interface";
import type { Patch, PatchNotices } from "../../swarm/patches/notices.ts";
import { withOverrides } from "../../swarm/patches/with_overrides.ts";

export const patch: Patch = {
  library: "@libp2p/kad-dht",
  version: "16.4.5",
  without: "what one DHT response may name is not bounded",
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

/** Peers close to the key in one response; an honest one names twenty. */
const MAX_CLOSER = 20;
const MAX_PROVIDERS = 256;
/** Addresses of each peer. */
const MAX_ADDRESSES = 128;
/** Bytes of one response. */
const MAX_RESPONSE_SIZE = 2 ** 20;

/** Takes the first peers of each response and leaves out the rest; a response that is too long fails. */
export function limitResponses(kad: object, notices: PatchNotices): void {
  const { network } = kad as { readonly network?: Partial<KadNetwork> };
  const { _writeReadMessage: read, safeDispatchEvent } = network ?? {};
  const parts = { "network._writeReadMessage": read, "network.safeDispatchEvent": safeDispatchEvent };
  if (!notices.isApplicable(patch, parts) || network === undefined || read === undefined) return;
  const whole = network as KadNetwork;
  whole._writeReadMessage = async (stream, message, options) => {
    let left = MAX_CLOSER + MAX_PROVIDERS;
    const bounded = withOverrides(whole, {
      safeDispatchEvent: (name: string, event: object) => left-- > 0 && whole.safeDispatchEvent(name, event),
    });
    const { closer, providers, ...rest } = await withinMaxSize(stream, () =>
      read.call(bounded, stream, message, options),
    );
    return { ...rest, closer: firstOf(closer, MAX_CLOSER), providers: firstOf(providers, MAX_PROVIDERS) };
  };
}

const firstOf = (peers: readonly NamedPeer[], count: number): NamedPeer[] =>
  peers.slice(0, count).map((peer) => ({ ...peer, multiaddrs: peer.multiaddrs.slice(0, MAX_ADDRESSES) }));

async function withinMaxSize<T>(stream: Stream, read: () => Promise<T>): Promise<T> {
  let bytes = 0;
  const count = ({ data }: { readonly data: { readonly byteLength: number } }) => {
    bytes += data.byteLength;
    if (bytes > MAX_RESPONSE_SIZE) stream.abort(new Error("the response is too long"));
  };
  stream.addEventListener("message", count);
  try {
    return await read();
  } finally {
    stream.removeEventListener("message", count);
  }
}

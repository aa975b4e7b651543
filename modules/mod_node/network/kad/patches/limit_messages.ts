/**
 * Limits DHT messages, and how much of each is read. The library accepts messages of four
 * megabytes, decodes them in one piece, announces every peer in a response and dials them all: a
 * single response could cause minutes of work. The library only receives provider records that
 * contain new addresses of a peer.
 */
import { type PeerId, type Stream, StreamMessageEvent } from "@libp2p/interface";
import type { Patch, PatchNotices } from "../../swarm/patches/notices.ts";
import { withOverrides } from "../../swarm/patches/with_overrides.ts";
import { boundsOfStream } from "../message_bounds.ts";
import { storeProviderRecords } from "../received_records.ts";
import type { RecordStore } from "../record_store.ts";

export const patch: Patch = {
  library: "@libp2p/kad-dht",
  version: "16.4.5",
  without: "the contents of DHT messages are not limited",
};

/** The part of the library's `network` that reads responses. */
export interface KadNetwork {
  _writeReadMessage(stream: Stream, message: unknown, options: unknown): Promise<unknown>;
}

/** The part of the library's `rpc` that responds to requests of other peers. */
export interface KadRpc {
  onIncomingStream(stream: Stream, connection: { readonly remotePeer: PeerId }): Promise<void>;
}

/**
 * Passes only the first peers of each message on to the library; a message that exceeds the total
 * limits resets its stream. Must be called before the DHT starts.
 */
export function limitMessages(kad: object, records: Pick<RecordStore, "addProvider">, notices: PatchNotices): void {
  const { network, rpc } = kad as { readonly network?: Partial<KadNetwork>; readonly rpc?: Partial<KadRpc> };
  const { _writeReadMessage: read } = network ?? {};
  const { onIncomingStream: respond } = rpc ?? {};
  const parts = { "network._writeReadMessage": read, "rpc.onIncomingStream": respond };
  if (!notices.isApplicable(patch, parts) || network === undefined || read === undefined) return;
  if (rpc !== undefined && respond !== undefined) {
    rpc.onIncomingStream = (stream, connection) => {
      const bounded = boundsOfStream((messages) => storeProviderRecords(messages, connection.remotePeer, records));
      return respond.call(rpc as KadRpc, withinBounds(stream, bounded), connection);
    };
  }
  network._writeReadMessage = (stream, message, options) =>
    read.call(network as KadNetwork, withinBounds(stream), message, options);
}

type Listener = (event: StreamMessageEvent) => void;

/**
 * Wraps a stream so that its listener receives whole messages within the limits. A message that
 * exceeds them resets the stream.
 */
function withinBounds(stream: Stream, bounded = boundsOfStream()): Stream {
  const listeners = new Map<unknown, Listener>();
  const boundedListener = (listener: Listener): Listener => {
    const made: Listener = ({ data }) => {
      try {
        for (const message of bounded(data)) listener(new StreamMessageEvent(message));
      } catch (error) {
        stream.abort(error as Error);
      }
    };
    listeners.set(listener, made);
    return made;
  };
  return withOverrides(stream, {
    addEventListener: (name: string, listener: unknown, options?: unknown) =>
      stream.addEventListener(
        name as "message",
        name === "message" ? boundedListener(listener as Listener) : (listener as Listener),
        options as never,
      ),
    removeEventListener: (name: string, listener: unknown, options?: unknown) =>
      stream.removeEventListener(
        name as "message",
        (listeners.get(listener) ?? listener) as Listener,
        options as never,
      ),
  });
}

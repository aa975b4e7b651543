/**
 * Bounds DHT messages, and what of one is read. The library takes messages of four megabytes, which it decodes in one piece,
 * announces every peer in a response and dials them all: one response could make work for minutes. Of provider records it gets only
 * those that say something new of a peer.
 */
import { type PeerId, type Stream, StreamMessageEvent } from "@libp2p/interface";
import type { Patch, PatchNotices } from "../../swarm/patches/notices.ts";
import { withOverrides } from "../../swarm/patches/with_overrides.ts";
import { boundsOfStream } from "../message_bounds.ts";
import { keepRecords } from "../received_records.ts";
import type { RecordStore } from "../record_store.ts";

export const patch: Patch = {
  library: "@libp2p/kad-dht",
  version: "16.4.5",
  without: "what one DHT message may hold is not bounded",
};

/** What is used of the library's `network`, which reads responses. */
export interface KadNetwork {
  _writeReadMessage(stream: Stream, message: unknown, options: unknown): Promise<unknown>;
}

/** What is used of the library's `rpc`, which answers the requests of others. */
export interface KadRpc {
  onIncomingStream(stream: Stream, connection: { readonly remotePeer: PeerId }): Promise<void>;
}

/**
 * Takes the first peers of each message and leaves out the rest; a message beyond the bounds resets its stream. To be
 * called before the DHT starts.
 */
export function limitMessages(kad: object, records: Pick<RecordStore, "keepOf">, notices: PatchNotices): void {
  const { network, rpc } = kad as { readonly network?: Partial<KadNetwork>; readonly rpc?: Partial<KadRpc> };
  const { _writeReadMessage: read } = network ?? {};
  const { onIncomingStream: answer } = rpc ?? {};
  const parts = { "network._writeReadMessage": read, "rpc.onIncomingStream": answer };
  if (!notices.isApplicable(patch, parts) || network === undefined || read === undefined) return;
  if (rpc !== undefined && answer !== undefined) {
    rpc.onIncomingStream = (stream, connection) => {
      const bounded = boundsOfStream((messages) => keepRecords(messages, connection.remotePeer, records));
      return answer.call(rpc as KadRpc, withinBounds(stream, bounded), connection);
    };
  }
  network._writeReadMessage = (stream, message, options) =>
    read.call(network as KadNetwork, withinBounds(stream), message, options);
}

type Listener = (event: StreamMessageEvent) => void;

/** The stream, of which the one who listens gets whole messages within the bounds. One beyond them resets it. */
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

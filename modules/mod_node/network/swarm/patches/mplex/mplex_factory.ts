/**
 * mplex, which go-ipfs 0.9 chooses for the connections that it opens, with two changes. The library
 * gives up on a peer that opens more than 5 streams in a second, as nodes do that open a stream per
 * bitswap message. And when it gives up, it leaves the useless connection open.
 */
import type { StreamMuxerFactory } from "@libp2p/interface";
import { mplex } from "@libp2p/mplex";
import type { Patch, PatchNotices } from "../notices.ts";

export const patch: Patch = {
  library: "@libp2p/mplex",
  version: "12.0.32",
  without: "a connection whose multiplexer gave up stays open until it times out",
};

/** Name of the multiplexer in connections. */
export const MPLEX = "/mplex/6.7.0";

/**
 * Maximum number of streams that a peer may open per second, and of messages per second for closed
 * streams. Protocols have limits of their own.
 */
const MAX_PER_SECOND = 1000;

/** Creates the library's factory. A multiplexer that gives up also aborts its connection. */
export function mplexFactory(notices: PatchNotices, maxPerSecond = MAX_PER_SECOND): () => StreamMuxerFactory {
  const make = mplex({ disconnectThreshold: maxPerSecond });
  return () => {
    const factory = make();
    const { createStreamMuxer } = factory;
    factory.createStreamMuxer = (connection) => {
      const muxer = createStreamMuxer.call(factory, connection);
      const { abort }: Partial<typeof muxer> = muxer;
      if (!notices.isApplicable(patch, { "muxer.abort": abort })) return muxer;
      muxer.abort = (error) => {
        abort?.call(muxer, error);
        if (connection.status === "open") connection.abort(error);
      };
      return muxer;
    };
    return factory;
  };
}

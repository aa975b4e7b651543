/**
 * mplex, which go-ipfs 0.9 chooses for the connections that it opens, with two changes. The library gives up on a peer
 * that opens more than 5 streams in a second: nodes that open one for each bitswap message do. And when it gives up, it
 * leaves the connection open without any use.
 */
import type { StreamMuxerFactory } from "@libp2p/interface";
import { mplex } from "@libp2p/mplex";
import type { Patch, PatchNotices } from "../notices.ts";

export const patch: Patch = {
  library: "@libp2p/mplex",
  version: "12.0.32",
  without: "a connection whose multiplexer gave up stays open until it times out",
};

/** The multiplexer, as connections name it. */
export const MPLEX = "/mplex/6.7.0";

/** Streams that a peer may open in a second, and messages in a second for closed streams. Protocols have own bounds. */
const MAX_PER_SECOND = 1000;

/** The library's factory; a multiplexer that gives up takes its connection with it. */
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

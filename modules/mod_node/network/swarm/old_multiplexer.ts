/** mplex: nodes of version 0.9 choose it for the connections that they open. */
import type { StreamMuxerFactory } from "@libp2p/interface";
import { mplex } from "@libp2p/mplex";

/**
 * Streams that a peer may open in a second, and messages in a second for streams that are gone. The library's 5 cuts
 * off nodes that open a stream for each message of an exchange of blocks; each protocol bounds its streams by itself.
 */
const usual = 1000;

/** As the library's, but for its bounds; and when it gives up, the connection ends, too, rather than stay without use. */
export function mplexFactory(perSecond = usual): () => StreamMuxerFactory {
  const make = mplex({ disconnectThreshold: perSecond });
  return () => {
    const factory = make();
    const { createStreamMuxer } = factory;
    factory.createStreamMuxer = (connection) => {
      const muxer = createStreamMuxer.call(factory, connection);
      const { abort } = muxer;
      muxer.abort = (error) => {
        abort.call(muxer, error);
        if (connection.status === "open") connection.abort(error);
      };
      return muxer;
    };
    return factory;
  };
}

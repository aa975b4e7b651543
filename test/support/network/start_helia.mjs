/**
 * Starts a helia over TCP that keeps its blocks in memory and asks no server of the web. This text
 * stands before that of a script, which is evaluated in a folder that has helia: there are its
 * packages, so the script cannot import this file.
 */
import { withBitswap } from "@helia/bitswap";
import { libp2pDefaults, withLibp2p } from "@helia/libp2p";
import { tcp } from "@libp2p/tcp";
import { createHeliaLight } from "helia";

globalThis.startHelia = (settings) => {
  const { connectionEncrypters, streamMuxers } = libp2pDefaults();
  const config = {
    config: "replace",
    addresses: { listen: ["/ip4/127.0.0.1/tcp/0"] },
    transports: [tcp()],
    connectionEncrypters,
    streamMuxers,
    peerDiscovery: [],
    ...settings,
  };
  return withBitswap(withLibp2p(createHeliaLight(), config)).start();
};

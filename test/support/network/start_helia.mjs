/**
 * Starts a Helia node over TCP that stores its blocks in memory and contacts no public server. The
 * text of this file is put before a script, which runs in a folder that has Helia's packages. That
 * is why the script cannot import this file.
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

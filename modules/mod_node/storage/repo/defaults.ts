/** Longer default values of a new repo. */

export const defaultAddresses = {
  Swarm: ["/ip4/0.0.0.0/tcp/4001", "/ip6/::/tcp/4001", "/ip4/0.0.0.0/udp/4001/quic", "/ip6/::/udp/4001/quic"],
  API: "/ip4/127.0.0.1/tcp/5001",
  Gateway: "/ip4/127.0.0.1/tcp/8080",
} as const;

export const bootstrapPeers: readonly string[] = [
  "/dnsaddr/bootstrap.libp2p.io/p2p/QmNnooDu7bfjPFoTZYxMNLWUQJyrVwtbZg5gBMjTezGAJN",
  "/dnsaddr/bootstrap.libp2p.io/p2p/QmQCU2EcMqAqQPR2i9bChDtGNJchTbq5TbXJJ16u19uLTa",
  "/dnsaddr/bootstrap.libp2p.io/p2p/QmbLHAnMoJPWSCR5Zhtx6BHJX9KiKNN6tpvbUcqanj75Nb",
  "/dnsaddr/bootstrap.libp2p.io/p2p/QmcZf59bWwK5XFi76CZX8cbJ4BhTzzA3gU1ZjYZcYW3dwt",
  "/ip4/104.131.131.82/tcp/4001/p2p/QmaCpDMGvV2BGHeYERUEnRQAwe3N8SzbUtfsmvsqQLuvuJ",
  "/ip4/104.131.131.82/udp/4001/quic/p2p/QmaCpDMGvV2BGHeYERUEnRQAwe3N8SzbUtfsmvsqQLuvuJ",
];

const ethereum = "https://resolver.cloudflare-eth.com/dns-query";
/** URLs of resolvers for domains that the public DNS does not have. */
export const domainResolvers: Readonly<Record<string, string>> = { "eth.": ethereum, "crypto.": ethereum };

const mount = (mountpoint: string, engine: string, child: object) => ({
  child,
  mountpoint,
  prefix: `${engine}.datastore`,
  type: "measure",
});

/** Blocks are in segments, everything else is in LMDB. */
export const defaultSpec = {
  mounts: [
    mount("/blocks", "segments", { path: "segments", type: "segments" }),
    mount("/", "lmdb", { path: "metadata", type: "lmdb" }),
  ],
  type: "mount",
};

/** Each block is in its own file. */
export const flatfsSpec = {
  mounts: [
    mount("/blocks", "flatfs", {
      path: "blocks",
      shardFunc: "/repo/flatfs/shard/v1/next-to-last/2",
      sync: true,
      type: "flatfs",
    }),
    mount("/", "leveldb", { compression: "none", path: "datastore", type: "levelds" }),
  ],
  type: "mount",
};

export const badgerSpec = {
  child: { path: "badgerds", syncWrites: false, truncate: true, type: "badgerds" },
  prefix: "badger.datastore",
  type: "measure",
};

/** Everything is in one Pebble database, the current engine of Kubo. */
export const pebbleSpec = {
  child: { formatMajorVersion: 24, path: "pebbleds", type: "pebbleds" },
  prefix: "pebble.datastore",
  type: "measure",
};

/** Address ranges that are reachable only within one network. */
export const privateRanges: readonly string[] = [
  ...[
    "10.0.0.0/ipcidr/8",
    "100.64.0.0/ipcidr/10",
    "169.254.0.0/ipcidr/16",
    "172.16.0.0/ipcidr/12",
    "192.0.0.0/ipcidr/24",
    "192.0.2.0/ipcidr/24",
    "192.168.0.0/ipcidr/16",
    "198.18.0.0/ipcidr/15",
    "198.51.100.0/ipcidr/24",
    "203.0.113.0/ipcidr/24",
    "240.0.0.0/ipcidr/4",
  ].map((range) => `/ip4/${range}`),
  ...["100::/ipcidr/64", "2001:2::/ipcidr/48", "2001:db8::/ipcidr/32", "fc00::/ipcidr/7", "fe80::/ipcidr/10"].map(
    (range) => `/ip6/${range}`,
  ),
];

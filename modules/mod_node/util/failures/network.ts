/** Failures of the network: peers, addresses, routing, names, pubsub and pinning services. */
export const networkFailures = {
  // Addresses and peers
  /** A text is not a valid multiaddr, or not of the required form. */
  ADDRESS_INVALID: "{reason}",
  ADDRESS_WITHOUT_PEERS: "found no ipfs peers at {address}",
  /** A DNS lookup failed. */
  DNS_FAILED: "{reason}",
  /** A peer cannot be found or dialled, or does not respond. */
  PEER_UNREACHABLE: "{reason}",
  /** The call needs another peer than this node. */
  PEER_IS_SELF: "{reason}",
  /** There is no such connection. */
  NOT_CONNECTED: "{reason}",
  /** The node is not connected to any peer. */
  NO_CONNECTED_PEERS: "{reason}",
  /** The node cannot listen on an address. */
  LISTEN_FAILED: "{reason}",
  /** A message of a peer exceeds a limit. */
  MESSAGE_INVALID: "{reason}",
  /** The key of the private network is missing or invalid. */
  SWARM_KEY_INVALID: "{reason}",
  // Routing
  DHT_MISSING: "routing service is not a DHT",
  ROUTING_NOT_FOUND: "routing: not found",
  ROUTING_TABLE_EMPTY: "failed to find any peer in table",
  /** An HTTP router failed, or did not respond in time. */
  ROUTER_FAILED: "{reason}",
  /** No peer, or not enough peers, accepted an announcement. */
  ANNOUNCE_FAILED: "{reason}",
  REPROVIDER_BUSY: "reprovider is already running",
  PROVIDED_CID_INVALID: "invalid CID {text}: {reason}",
  // Names and their records
  /** A record of a name or of a public key is invalid. */
  RECORD_INVALID: "{reason}",
  RECORD_EXPIRED: "expired record",
  /** A record is not newer than the one that it would replace. */
  RECORD_OUTDATED: "{reason}",
  NAME_LOOP: "could not resolve name (recursion limit exceeded)",
  DOMAIN_INVALID: "not a valid domain name: {domain}",
  NAME_MOUNTED: "cannot manually publish while IPNS is mounted",
  /** There are no delegated publishers in the configuration. */
  PUBLISHERS_MISSING: "{reason}",
  // Streams and pubsub
  P2P_LISTENER_EXISTS: "listener already registered",
  SUBSCRIBED_ALREADY: "Already subscribed to {topic} with this handler",
  // Pinning services
  PINNING_SERVICE_UNKNOWN: "service not known",
  PINNING_SERVICE_EXISTS: "service already present",
  /** A pinning service failed, or its response is invalid. */
  PINNING_SERVICE_FAILED: "{reason}",
  /** A pinning service could not pin the object. */
  REMOTE_PIN_FAILED: "{reason}",
  REMOTE_PINS_MANY: "multiple remote pins are matching this query, add --force to confirm the bulk removal",
} as const satisfies Record<string, string>;

/**
 * Keys of Kubo 0.43 that have no effect in this node, each with the reason. They are stored, read
 * and written like any other key, including all keys below them. The table on the reference page is
 * generated from this one.
 */
import { isObject, type JsonObject } from "./json.ts";
import { laterKeys } from "./later_keys.ts";

const sameAlways = "Nothing to choose: ";

export const ignoredKeys: Readonly<Record<string, string>> = {
  AutoTLS:
    "The node obtains no certificates for swarm addresses; the option `acme_hosts` of the module host obtains those for HTTP.",
  "Datastore.BlockKeyCacheSize": "The block store has an index of its own.",
  "Datastore.WriteThrough": `${sameAlways}blocks are always written through.`,
  "DNS.MaxCacheTTL": "Responses of the resolvers in `DNS.Resolvers` are not cached.",
  "Experimental.GatewayOverLibp2p":
    "The gateway is only served on HTTP ports, not on streams of the swarm (`/http/1.1`): peers get the same blocks by bitswap.",
  "Experimental.OptimisticProvide": "An announcement always goes to the peers that are nearest to its key.",
  "Experimental.OptimisticProvideJobsPoolSize": "An announcement always goes to the peers that are nearest to its key.",
  "Gateway.AllowCodecConversion": "The gateway serves each block in its own codec, and the conversions of go-ipfs 0.9.",
  "Gateway.DiagnosticServiceURL": "Error pages do not link to another service.",
  "Import.BatchMaxNodes": "Blocks are written in batches that the store sizes.",
  "Import.BatchMaxSize": "Blocks are written in batches that the store sizes.",
  "Internal.ShutdownTimeout": "Calls that still run when the node ends are aborted after two seconds.",
  Internal: "These keys configure internals of Kubo.",
  "Mounts.MFS": "The namespace cannot be mounted separately.",
  "Provide.BloomFPRate": `${sameAlways}the set of announced keys is exact.`,
  "Provider.Enabled": "Superseded by `Provide`.",
  "Provider.WorkerCount": "Superseded by `Provide`.",
  "Pubsub.SeenMessagesStrategy": "A message counts as seen from its first arrival (`first-seen`).",
  "Routing.LoopbackAddressesOnLanDHT": "Peers of one machine find each other by their addresses.",
  "Swarm.ConnMgr.SilencePeriod": "Connections are counted whenever one is opened, not periodically.",
  "Swarm.RelayClient.StaticRelays": "Relays are found among the peers.",
  "Swarm.RelayService.BufferSize": "Data are forwarded as they arrive.",
  "Swarm.RelayService.MaxCircuits": "Connections through a relay are limited one by one.",
  "Swarm.RelayService.MaxReservationsPerASN": "Reservations are counted as a whole (`MaxReservations`).",
  "Swarm.RelayService.MaxReservationsPerIP": "Reservations are counted as a whole (`MaxReservations`).",
  "Swarm.RelayService.MaxReservationsPerPeer": "A peer has one reservation.",
  "Swarm.Transports.Network.WebRTCDirect":
    "Not supported: the library for it, `@libp2p/webrtc`, needs the native package `node-datachannel` in Node.js.",
  "Swarm.Transports.Network.WebTransport":
    "Not supported: the library for it, `@libp2p/webtransport`, only dials from browsers, and Node.js has no HTTP/3 server.",
  "Version.SwarmCheckEnabled": "Only `version/check` checks the versions of peers.",
  "Version.SwarmCheckPercentThreshold": "Only `version/check` checks the versions of peers.",
};

const paths = [...Object.keys(ignoredKeys), ...Object.keys(laterKeys)];

/** Whether a path is a key of Kubo, above one or below one, that version 0.9 does not know. */
export const isOfKubo = (path: string): boolean =>
  paths.some(
    (each) => each === path || each.startsWith(`${path}.`) || (each in ignoredKeys && path.startsWith(`${each}.`)),
  );

/**
 * Returns a document in which missing keys below `Import` are null, as Kubo shows them. Covers the
 * keys that this node knows.
 */
export function withNulls(document: JsonObject, known: readonly string[]): JsonObject {
  const { Import } = document;
  if (Import !== undefined && !isObject(Import)) return document;
  const names = [...known, ...Object.keys(ignoredKeys)].filter((path) => path.startsWith("Import."));
  const nulls = Object.fromEntries(names.map((path) => [path.slice("Import.".length), null]));
  return { ...document, Import: { ...nulls, ...Import } };
}

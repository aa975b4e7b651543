/**
 * Keys of Kubo 0.43 that have no effect here, each with the reason. They are kept, read and written as any other; whatever is below
 * one belongs to it. The table on the reference page is derived from this one.
 */
import { isObject, type JsonObject } from "./json.ts";
import { laterKeys } from "./later_keys.ts";

const sameAlways = "Nothing to choose: ";

export const keptKeys: Readonly<Record<string, string>> = {
  AutoTLS: "No certificate is got for addresses of the swarm; those for HTTP come by `acme_hosts` of the module host.",
  "Datastore.BlockKeyCacheSize": "The block store has an index of its own.",
  "Datastore.WriteThrough": `${sameAlways}blocks are always written through.`,
  "DNS.MaxCacheTTL": "Answers of the resolvers of `DNS.Resolvers` are not kept.",
  "Experimental.GatewayOverLibp2p": "The gateway is served over HTTP only.",
  "Experimental.OptimisticProvide": "An announcement always goes to the peers that are nearest to its key.",
  "Experimental.OptimisticProvideJobsPoolSize": "An announcement always goes to the peers that are nearest to its key.",
  "Gateway.AllowCodecConversion": "The gateway serves each block in its own codec, and the conversions of go-ipfs 0.9.",
  "Gateway.DiagnosticServiceURL": "Pages of errors lead to no other service.",
  "Import.BatchMaxNodes": "Blocks are written in batches that the store sizes.",
  "Import.BatchMaxSize": "Blocks are written in batches that the store sizes.",
  "Internal.ShutdownTimeout": "Calls that still run when the node ends are aborted after two seconds.",
  Internal: "Of the insides of Kubo.",
  "Mounts.MFS": "The namespace is not mounted by itself.",
  "Provide.BloomFPRate": `${sameAlways}what is announced is known exactly.`,
  "Provider.Enabled": "Superseded by `Provide`.",
  "Provider.WorkerCount": "Superseded by `Provide`.",
  "Pubsub.SeenMessagesStrategy": "A message is known as seen since it first came (`first-seen`).",
  "Routing.LoopbackAddressesOnLanDHT": "Peers of one machine find each other by their addresses.",
  "Swarm.ConnMgr.SilencePeriod": "Connections are counted whenever one is opened, and not from time to time.",
  "Swarm.RelayClient.StaticRelays": "Relays are found among the peers.",
  "Swarm.RelayService.BufferSize": "Data are handed on as they come.",
  "Swarm.RelayService.MaxCircuits": "Connections through a relay are limited one by one.",
  "Swarm.RelayService.MaxReservationsPerASN": "Reservations are counted as a whole (`MaxReservations`).",
  "Swarm.RelayService.MaxReservationsPerIP": "Reservations are counted as a whole (`MaxReservations`).",
  "Swarm.RelayService.MaxReservationsPerPeer": "A peer has one reservation.",
  "Swarm.Transports.Network.WebRTCDirect": "There is no such transport.",
  "Swarm.Transports.Network.WebTransport": "There is no such transport.",
  "Version.SwarmCheckEnabled": "Versions of peers are only looked at by `version/check`.",
  "Version.SwarmCheckPercentThreshold": "Versions of peers are only looked at by `version/check`.",
};

const paths = [...Object.keys(keptKeys), ...Object.keys(laterKeys)];

/** Whether Kubo has the key, or keys below it, of which version 0.9 knows nothing. */
export const isOfKubo = (path: string): boolean =>
  paths.some(
    (each) => each === path || each.startsWith(`${path}.`) || (each in keptKeys && path.startsWith(`${each}.`)),
  );

/** Keys below `Import` are shown as null where nothing is said, as Kubo does: by the names of those that this node knows. */
export function withNulls(document: JsonObject, known: readonly string[]): JsonObject {
  const { Import } = document;
  if (Import !== undefined && !isObject(Import)) return document;
  const names = [...known, ...Object.keys(keptKeys)].filter((path) => path.startsWith("Import."));
  const nulls = Object.fromEntries(names.map((path) => [path.slice("Import.".length), null]));
  return { ...document, Import: { ...nulls, ...Import } };
}

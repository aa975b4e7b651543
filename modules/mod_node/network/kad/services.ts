/** Registers the two DHTs as services of libp2p. */
import type { KadDHTComponents } from "@libp2p/kad-dht";
import type { Libp2p, ServiceFactoryMap } from "libp2p";
import type { MetadataStore } from "../../storage/metadata/store.ts";
import type { Repo } from "../../storage/repo/repo.ts";
import { PatchNotices } from "../swarm/patches/notices.ts";
import { Dht } from "./dht.ts";
import type { DhtMode, DhtName } from "./kademlia.ts";
import { RecordStore } from "./record_store.ts";

/** The mode of each DHT; undefined if there is no DHT. */
export type DhtModes = Readonly<Record<DhtName, DhtMode>> | undefined;

export interface RoutingServicesDeps {
  readonly repo: Pick<Repo, "identity">;
  readonly modes: DhtModes;
  readonly metadata: MetadataStore;
  readonly patches?: PatchNotices;
}

const serviceOf = (name: DhtName): string => `routing-${name}`;

export function routingServices({
  repo,
  modes,
  metadata,
  patches = new PatchNotices(),
}: RoutingServicesDeps): ServiceFactoryMap {
  if (modes === undefined) return {};
  const records = new RecordStore({ metadata, self: repo.identity.peerId });
  const make =
    (name: DhtName): ServiceFactoryMap[string] =>
    (components) =>
      // The host always has the `ping` service that a DHT needs.
      new Dht(components as typeof components & KadDHTComponents, { name, mode: modes[name], records, patches });
  return { [serviceOf("wan")]: make("wan"), [serviceOf("lan")]: make("lan") };
}

/** Returns undefined if there is no such DHT. */
export function dhtOf({ services }: Pick<Libp2p, "services">, name: DhtName): Dht | undefined {
  const service = (services as Readonly<Record<string, unknown>>)[serviceOf(name)];
  return service instanceof Dht ? service : undefined;
}

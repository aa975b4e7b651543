/** The two DHTs, as services of libp2p. */
import type { KadDHTComponents } from "@libp2p/kad-dht";
import type { Libp2p, ServiceFactoryMap } from "libp2p";
import type { MetadataStore } from "../../storage/metadata/store.ts";
import type { Repo } from "../../storage/repo/repo.ts";
import { NodeError } from "../../util/errors.ts";
import { PatchNotices } from "../swarm/patches/notices.ts";
import { Dht } from "./dht.ts";
import type { DhtMode, DhtName } from "./kademlia.ts";
import { RecordStore } from "./record_store.ts";

export interface RoutingServicesDeps {
  readonly repo: Pick<Repo, "config" | "identity">;
  readonly metadata: MetadataStore;
  readonly patches?: PatchNotices;
}

/** By `Routing.Type`. The DHT of the local network is a server always; the public one when it can be reached. */
const modes: Readonly<Record<string, Readonly<Record<DhtName, DhtMode>> | undefined>> = {
  "": { wan: "auto", lan: "server" },
  dht: { wan: "auto", lan: "server" },
  dhtclient: { wan: "client", lan: "client" },
  dhtserver: { wan: "server", lan: "server" },
  none: undefined,
};

const serviceOf = (name: DhtName): string => `routing-${name}`;

/** None with `Routing.Type` "none". @throws NodeError for an unknown type */
export function routingServices({
  repo,
  metadata,
  patches = new PatchNotices(),
}: RoutingServicesDeps): ServiceFactoryMap {
  const type = repo.config.value("Routing.Type");
  if (!Object.hasOwn(modes, type)) throw new NodeError(`unrecognized routing option: ${type}`);
  const mode = modes[type];
  if (mode === undefined) return {};
  const records = new RecordStore({ metadata, self: repo.identity.peerId });
  const make =
    (name: DhtName): ServiceFactoryMap[string] =>
    (components) =>
      // The host always has the `ping` that a DHT needs.
      new Dht(components as typeof components & KadDHTComponents, { name, mode: mode[name], records, patches });
  return { [serviceOf("wan")]: make("wan"), [serviceOf("lan")]: make("lan") };
}

/**
 * Has the DHTs go by `Routing.Type` as it is now.
 *
 * @throws NodeError for an unknown type, and for one that needs a DHT where there is none, or none where there is one
 */
export async function renewRouting(libp2p: Pick<Libp2p, "services">, config: Pick<Repo["config"], "value">) {
  const type = config.value("Routing.Type");
  if (!Object.hasOwn(modes, type)) throw new NodeError(`unrecognized routing option: ${type}`);
  const mode = modes[type];
  const [wan, lan] = [dhtOf(libp2p, "wan"), dhtOf(libp2p, "lan")];
  if ((mode === undefined) !== (wan === undefined)) throw new NodeError("to and from none it counts at the next start");
  if (mode === undefined) return;
  await wan?.setMode(mode.wan);
  await lan?.setMode(mode.lan);
}

/** Undefined with `Routing.Type` "none". */
export function dhtOf({ services }: Pick<Libp2p, "services">, name: DhtName): Dht | undefined {
  const service = (services as Readonly<Record<string, unknown>>)[serviceOf(name)];
  return service instanceof Dht ? service : undefined;
}

/** The tables of the routing system, as services of libp2p. */
import type { KadDHTComponents } from "@libp2p/kad-dht";
import type { Libp2p, ServiceFactoryMap } from "libp2p";
import type { MetadataStore } from "../../storage/metadata/store.ts";
import type { Repo } from "../../storage/repo/repo.ts";
import { NodeError } from "../../util/errors.ts";
import type { TableMode, TableName } from "./kademlia.ts";
import { Records } from "./records.ts";
import { Table } from "./routing_table.ts";

export interface RoutingServicesParts {
  readonly repo: Pick<Repo, "config" | "identity">;
  readonly metadata: MetadataStore;
}

/** By `Routing.Type`. A table of the local network serves wherever it may; the public one waits until it is reached. */
const modes: Readonly<Record<string, Readonly<Record<TableName, TableMode>> | undefined>> = {
  "": { wan: "auto", lan: "server" },
  dht: { wan: "auto", lan: "server" },
  dhtclient: { wan: "client", lan: "client" },
  dhtserver: { wan: "server", lan: "server" },
  none: undefined,
};

const serviceOf = (name: TableName): string => `routing-${name}`;

/** None when the configuration wants none. @throws NodeError of a type that there is not */
export function routingServices({ repo, metadata }: RoutingServicesParts): ServiceFactoryMap {
  const type = repo.config.value("Routing.Type");
  if (!Object.hasOwn(modes, type)) throw new NodeError(`unrecognized routing option: ${type}`);
  const mode = modes[type];
  if (mode === undefined) return {};
  const records = new Records({ metadata, self: repo.identity.peerId });
  const make =
    (name: TableName): ServiceFactoryMap[string] =>
    (components) =>
      // The host has a service `ping`.
      new Table(components as typeof components & KadDHTComponents, { name, mode: mode[name], records });
  return { [serviceOf("wan")]: make("wan"), [serviceOf("lan")]: make("lan") };
}

/** The table of that name; undefined when the configuration wants none. */
export function tableOf({ services }: Pick<Libp2p, "services">, name: TableName): Table | undefined {
  const service = (services as Readonly<Record<string, unknown>>)[serviceOf(name)];
  return service instanceof Table ? service : undefined;
}

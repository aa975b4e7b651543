/** The pinning services that the node knows, kept in its configuration. */

import type { Repo } from "../../storage/repo/repo.ts";
import type { ConfigValue } from "../../storage/repo/schema.ts";
import { NodeError } from "../../util/errors.ts";
import type { ServiceAccess } from "./client.ts";
import { serviceEndpoint } from "./endpoint.ts";

type Config = Pick<Repo["config"], "value" | "update">;
export type KnownService = NonNullable<ConfigValue<"Pinning.RemoteServices">>[string];

const section = "Pinning.RemoteServices";
const noPolicies = { MFS: { Enable: false, PinName: "", RepinInterval: "" } };

/** By name, in the order of the names. */
export function knownServices(config: Config): readonly (readonly [name: string, service: KnownService])[] {
  return Object.entries(config.value(section) ?? {}).sort(([a], [b]) => (a < b ? -1 : 1));
}

/** @throws NodeError without a name, and for one that is not known */
export function accessOf(config: Config, name: string | undefined): ServiceAccess {
  if (name === undefined) throw new NodeError("a service name must be passed");
  if (name === "") throw new NodeError("remote pinning service name not specified");
  const services = config.value(section) ?? {};
  const service = Object.hasOwn(services, name) ? services[name] : undefined;
  if (service === undefined) throw new NodeError("service not known");
  return { endpoint: serviceEndpoint(service.API.Endpoint), key: service.API.Key };
}

/** The key is not tried. @throws NodeError for a name that is taken, and as `serviceEndpoint` */
export async function addService(config: Config, name: string, { endpoint, key }: ServiceAccess): Promise<void> {
  const API = { Endpoint: serviceEndpoint(endpoint), Key: key };
  await config.update(section, (before) => {
    if (before !== null && Object.hasOwn(before, name)) throw new NodeError("service already present");
    return { ...before, [name]: { API, Policies: noPolicies } };
  });
}

/** One that is not known is no failure. */
export async function removeService(config: Config, name: string): Promise<void> {
  await config.update(section, (before) =>
    Object.fromEntries(Object.entries(before ?? {}).filter(([known]) => known !== name)),
  );
}

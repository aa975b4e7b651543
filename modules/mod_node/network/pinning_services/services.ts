/** Reads and changes the configured pinning services (`Pinning.RemoteServices`). */

import type { Repo } from "../../storage/repo/repo.ts";
import type { ConfigValue } from "../../storage/repo/schema.ts";
import { failure } from "../../util/errors.ts";
import type { ServiceAccess } from "./client.ts";
import { serviceEndpoint } from "./endpoint.ts";

type Config = Pick<Repo["config"], "value" | "update">;
export type KnownService = NonNullable<ConfigValue<"Pinning.RemoteServices">>[string];

const SECTION = "Pinning.RemoteServices";
const NO_POLICIES = { MFS: { Enable: false, PinName: "", RepinInterval: "" } };

/** Returns the services sorted by name. */
export function knownServices(config: Config): readonly (readonly [name: string, service: KnownService])[] {
  return Object.entries(config.value(SECTION) ?? {}).sort(([a], [b]) => (a < b ? -1 : 1));
}

/** @throws NodeError without a name, and for an unknown name */
export function accessOf(config: Config, name: string | undefined): ServiceAccess {
  if (name === undefined) throw failure("ARGUMENT_INVALID", { reason: "a service name must be passed" });
  if (name === "") throw failure("ARGUMENT_INVALID", { reason: "remote pinning service name not specified" });
  const services = config.value(SECTION) ?? {};
  const service = Object.hasOwn(services, name) ? services[name] : undefined;
  if (service === undefined) throw failure("PINNING_SERVICE_UNKNOWN");
  return { endpoint: serviceEndpoint(service.API.Endpoint), key: service.API.Key };
}

/**
 * Adds a service without contacting it. @throws NodeError for a name in use, and as
 * `serviceEndpoint`
 */
export async function addService(config: Config, name: string, { endpoint, key }: ServiceAccess): Promise<void> {
  const API = { Endpoint: serviceEndpoint(endpoint), Key: key };
  await config.update(SECTION, (before) => {
    if (before !== null && Object.hasOwn(before, name)) throw failure("PINNING_SERVICE_EXISTS");
    return { ...before, [name]: { API, Policies: NO_POLICIES } };
  });
}

/** Removes a service; an unknown name is not an error. */
export async function removeService(config: Config, name: string): Promise<void> {
  await config.update(SECTION, (before) =>
    Object.fromEntries(Object.entries(before ?? {}).filter(([known]) => known !== name)),
  );
}

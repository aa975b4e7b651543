/** Keys of the configuration that the API never shows or changes. */
import { failure } from "../../util/errors.ts";
import { getAt, isObject, type JsonObject } from "./json.ts";
import { type Document, decodeConfig, valueAt } from "./schema.ts";
import type { RemoteService } from "./value_structs.ts";

/** Path of the private key. */
export const privateKeyPath = "Identity.PrivKey";

const privateKey: readonly string[] = privateKeyPath.split(".");
const serviceKeys: readonly string[] = ["Pinning", "RemoteServices", "*", "API", "Key"];

const same = (pattern: string, name: string) => pattern === "*" || pattern.toLowerCase() === name.toLowerCase();

/**
 * Refuses paths to secrets.
 * @throws NodeError for a path to a secret or to an object that contains one
 */
export function requireShown(path: string): void {
  if (["identity", "identity.privkey"].includes(path.toLowerCase())) {
    throw failure("CONFIG_SECRET", { reason: "cannot show or change private key through API" });
  }
  const names = path.split(".");
  if (serviceKeys.every((pattern, at) => at >= names.length || same(pattern, names[at] as string))) {
    throw failure("CONFIG_SECRET", { reason: "cannot show or change pinning services credentials" });
  }
}

export function withoutSecrets(document: JsonObject): JsonObject {
  return withoutAuthorizations(removePath(removePath(document, privateKey), serviceKeys));
}

/** Shows the section of caller secrets as an empty object, as Kubo does. */
function withoutAuthorizations(document: JsonObject): JsonObject {
  return mapFields(document, "API", (api) => mapFields(api, "Authorizations", () => ({})));
}

function mapFields(document: JsonObject, pattern: string, change: (object: JsonObject) => JsonObject): JsonObject {
  const fields = Object.entries(document);
  return Object.fromEntries(
    fields.map(([name, value]) => [name, same(pattern, name) && isObject(value) ? change(value) : value]),
  );
}

/** Removes the value at a path. A value on the path that is not an object is removed as well. */
function removePath(document: JsonObject, [pattern = "", ...below]: readonly string[]): JsonObject {
  const remaining = Object.entries(document).flatMap(([name, value]): [string, unknown][] => {
    if (!same(pattern, name)) return [[name, value]];
    return below.length > 0 && isObject(value) ? [[name, removePath(value, below)]] : [];
  });
  return Object.fromEntries(remaining);
}

type Services = Readonly<Record<string, RemoteService>>;

/**
 * Returns a new document with the secrets of the old one.
 *
 * @throws NodeError when the new document has secrets of its own or other services
 */
export function keepSecrets(next: Document, before: JsonObject): Document {
  const { Identity, Pinning, API } = next as Readonly<Record<"Identity" | "Pinning" | "API", JsonObject>>;
  if (valueAt(next, privateKeyPath) !== "")
    throw failure("CONFIG_SECRET", { reason: "setting private key with API is not supported" });
  const services = keepServices(
    valueAt(next, "Pinning.RemoteServices"),
    valueAt(decodeConfig(before), "Pinning.RemoteServices"),
  );
  // Shown documents contain no authorizations and may come back as replacements. So a replacement
  // adds entries and removes none.
  const old = valueAt(decodeConfig(before), "API.Authorizations");
  const authorizations = old === null ? {} : { Authorizations: { ...old, ...valueAt(next, "API.Authorizations") } };
  return {
    ...next,
    Identity: { ...Identity, PrivKey: privateKeyOf(before) },
    API: { ...API, ...authorizations },
    Pinning: { ...Pinning, RemoteServices: services },
  };
}

function privateKeyOf(document: JsonObject): string {
  let key: unknown;
  try {
    key = getAt(document, privateKeyPath);
  } catch {
    throw failure("IDENTITY_INVALID", { reason: "failed to get PrivKey" });
  }
  if (typeof key !== "string") throw failure("IDENTITY_INVALID", { reason: "private key in config was not a string" });
  return key;
}

function keepServices(next: Services | null, before: Services | null): Services | null {
  const old = before ?? {};
  const names = Object.keys(next ?? {});
  if (names.length !== Object.keys(old).length || names.some((name) => !Object.hasOwn(old, name))) {
    throw failure("CONFIG_SECRET", { reason: "cannot add or remove remote pinning services with 'config replace'" });
  }
  if (next === null) return null;
  const services = Object.entries(next).map(([name, service]) => {
    const { API } = old[name] as RemoteService;
    const { Key, Endpoint } = service.API;
    if (Key !== "" || (Endpoint !== "" && Endpoint !== API.Endpoint)) {
      throw failure("CONFIG_SECRET", {
        reason: "cannot change remote pinning services api info with `config replace`",
      });
    }
    return [name, { ...service, API }] as const;
  });
  return Object.fromEntries(services);
}

/**
 * Creates the router for `Routing.Type` "custom" from `Routing.Routers` and `Routing.Methods` of
 * the configuration.
 */

import type { Repo } from "../../storage/repo/repo.ts";
import type { RouterConfig } from "../../storage/repo/value_structs.ts";
import { failure } from "../../util/errors.ts";
import { parseDuration } from "../../util/go/duration.ts";
import { quote } from "../../util/go/text.ts";
import type { DhtMode, DhtName } from "../kad/kademlia.ts";
import type { DhtModes } from "../kad/services.ts";
import { type Member, parallel, sequential } from "./compose.ts";
import { type MethodName, methodNames, only, type Router } from "./router.ts";

/** Creates the routers that others are composed of. */
export interface RouterParts {
  /** Throws if there is no DHT. */
  readonly dht: (name: DhtName) => Router;
  readonly http: (url: string) => Router;
}

const MODES: readonly string[] = ["auto", "client", "server"] satisfies DhtMode[];

/** Creates the router of each method. @throws NodeError that names what is missing or wrong */
export function customRouter(config: Pick<Repo["config"], "value">, parts: RouterParts): Router {
  const routers = config.value("Routing.Routers") ?? {};
  const chosen = config.value("Routing.Methods") ?? {};
  const names = Object.keys(methodNames) as MethodName[];
  const missing = names.find((name) => chosen[name] === undefined);
  if (missing !== undefined) {
    throw failure("CONFIG_INVALID", {
      reason: `method name ${quote(missing)} is missing from Routing.Methods config param`,
    });
  }
  const stranger = Object.keys(chosen).find((name) => !Object.hasOwn(methodNames, name));
  if (stranger !== undefined) {
    throw failure("CONFIG_INVALID", {
      reason: `method name ${quote(stranger)} is not a supported method on Routing.Methods config param`,
    });
  }
  const made = new Map<string, Router>();
  const parted = names.map((name) => {
    const { RouterName: routerName = "" } = chosen[name] ?? {};
    return only(routerNamed(routerName, [], { routers, made, parts }), [methodNames[name]]);
  });
  return Object.assign({}, ...parted) as Router;
}

interface Making {
  readonly routers: Readonly<Record<string, RouterConfig>>;
  /** Routers by name, so that a router that is named twice is created once. */
  readonly made: Map<string, Router>;
  readonly parts: RouterParts;
}

/** @param above names of the routers that contain this one */
function routerNamed(name: string, above: readonly string[], making: Making): Router {
  const { routers, made, parts } = making;
  const known = made.get(name);
  if (known !== undefined) return known;
  if (above.includes(name))
    throw failure("CONFIG_INVALID", { reason: `dependency loop creating router with name ${quote(name)}` });
  const config = Object.hasOwn(routers, name) ? routers[name] : undefined;
  if (config === undefined)
    throw failure("CONFIG_INVALID", { reason: `config for router with name ${quote(name)} not found` });
  const { Parameters: parameters } = config;
  const members = (): Member[] =>
    (parameters.Routers ?? []).map((member) => ({
      router: routerNamed(member.RouterName, [...above, name], making),
      ignoreErrors: member.IgnoreErrors,
      timeoutMs: durationOf(member.Timeout),
      delayMs: durationOf(member.ExecuteAfter),
    }));
  const kinds: Readonly<Record<string, () => Router>> = {
    http() {
      const { Endpoint: endpoint } = parameters;
      if (endpoint) return parts.http(endpoint);
      throw failure("CONFIG_INVALID", {
        reason: `router ${quote(name)}: configuration param 'Endpoint' is needed for http delegated routing types`,
      });
    },
    dht: () => parts.dht(dhtNameOf(config)),
    parallel: () => parallel(members(), durationOf(parameters.Timeout)),
    sequential: () => sequential(members(), durationOf(parameters.Timeout)),
  };
  const kind = Object.hasOwn(kinds, config.Type) ? kinds[config.Type] : undefined;
  if (kind === undefined) {
    const known = Object.keys(kinds).join(", ");
    throw failure("CONFIG_INVALID", {
      reason: `unknown router type ${quote(config.Type)} of the router ${quote(name)}: known types are ${known}`,
    });
  }
  const router = kind();
  made.set(name, router);
  return router;
}

const durationOf = (text: string | undefined): number => (text ? parseDuration(text) : 0);

const dhtNameOf = ({ Parameters }: RouterConfig): DhtName => (Parameters.PublicIPNetwork === true ? "wan" : "lan");

/**
 * Returns the modes of both DHTs if at least one of them is used as a router. A DHT that is not
 * used becomes a client. @throws NodeError for an unknown mode
 */
export function customModes(config: Pick<Repo["config"], "value">): DhtModes {
  const routers = Object.entries(config.value("Routing.Routers") ?? {}).filter(([, { Type }]) => Type === "dht");
  if (routers.length === 0) return undefined;
  const modes: Record<DhtName, DhtMode> = { wan: "client", lan: "client" };
  for (const [name, router] of routers) {
    const { Mode: mode = "" } = router.Parameters;
    if (!MODES.includes(mode)) {
      throw failure("CONFIG_INVALID", {
        reason: `router ${quote(name)}: invalid DHT mode: ${quote(mode)} is not one of ${MODES.join(", ")}`,
      });
    }
    modes[dhtNameOf(router)] = mode as DhtMode;
  }
  return modes;
}

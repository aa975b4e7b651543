/**
 * Keys of Kubo for settings that version 0.9 has under other names. When a configuration has such a
 * key, it overrides the older one. The table on the reference page is generated from this one.
 */
import { failure } from "../../util/errors.ts";
import { isObject, type JsonObject } from "./json.ts";
import type { ConfigPath, ConfigValue } from "./schema.ts";
import { duration, flag, type Kind, optionalText } from "./value_kinds.ts";

/** The settings of these keys, when they are set. */
export interface LaterSettings {
  readonly overrides: { readonly [P in ConfigPath]?: ConfigValue<P> };
  readonly pubsub: boolean | undefined;
  readonly namesOverPubsub: boolean | undefined;
  /** The later key that sets a key of version 0.9. */
  readonly names: ReadonlyMap<ConfigPath, string>;
}

interface LaterKey {
  readonly kind: Kind;
  /** The setting of version 0.9: a key, or a choice that is made at startup. */
  readonly instead: ConfigPath | "pubsub" | "namesOverPubsub";
  /** Converts the value; by default unchanged. Undefined leaves the older setting in place. */
  readonly meaning?: (value: never) => unknown;
  /** One sentence for the reference page. */
  readonly help: string;
}

export const laterKeys: Readonly<Record<string, LaterKey>> = {
  "Pubsub.Enabled": {
    kind: flag,
    instead: "pubsub",
    help: "Enables publish and subscribe, unless the option `node_pubsub` or the flag `--enable-pubsub-experiment` is given.",
  },
  "Ipns.UsePubsub": {
    kind: flag,
    instead: "namesOverPubsub",
    help: "Enables names over publish and subscribe, and publish and subscribe itself, unless `node_namesys_pubsub` or `--enable-namesys-pubsub` is given.",
  },
  "Routing.AcceleratedDHTClient": {
    kind: flag,
    instead: "Experimental.AcceleratedDHTClient",
    help: "Announce in batches.",
  },
  "Swarm.RelayClient.Enabled": {
    kind: flag,
    instead: "Swarm.EnableAutoRelay",
    help: "Be reachable through a relay. Off unless it is true, as in 0.9.",
  },
  "Swarm.RelayService.Enabled": {
    kind: flag,
    instead: "Swarm.EnableRelayHop",
    help: "Be a relay for others. Off unless it is true, as in 0.9.",
  },
  "Provide.Enabled": {
    kind: flag,
    instead: "Experimental.StrategicProviding",
    meaning: (value: boolean) => !value,
    help: "`false`: announce nothing except on request.",
  },
  "Provide.Strategy": {
    kind: optionalText,
    instead: "Reprovider.Strategy",
    meaning: (value: string) => value.replace(/^flat$/, "all"),
    help: "`all`, `roots`, or `pinned`, `mfs` and `pinned+mfs`, which `+entities` limits to the roots of files and to other nodes; `+unique` changes nothing. `flat` is `all`.",
  },
  "Provide.DHT.Interval": {
    kind: duration,
    instead: "Reprovider.Interval",
    meaning: (value: string) => (value === "" ? "0" : value),
    help: "How often stored content is announced; `0` is never.",
  },
};

/**
 * The announcement interval of a repo of Kubo without a setting. A repo of version 0.9 has a
 * setting or uses 12h.
 */
const KUBO_INTERVAL = "22h";

/**
 * Reads the settings of later keys.
 * @throws NodeError that names a key with a value of the wrong kind
 */
export function laterSettings(document: JsonObject): LaterSettings {
  const found: Record<string, unknown> = {};
  const names = new Map<ConfigPath, string>();
  for (const [path, { kind, instead, meaning = (value: unknown) => value }] of Object.entries(laterKeys)) {
    const written = valueAt(document, path.split("."));
    if (written === undefined || written === null) continue;
    const value = meaning(decoded(kind, path, written) as never);
    if (value === undefined) continue;
    found[instead] = value;
    names.set(instead as ConfigPath, path);
  }
  const isSilent = found["Reprovider.Interval"] === undefined && !valueAt(document, ["Reprovider", "Interval"]);
  if (isSilent && isObject(valueAt(document, ["Provide"]))) found["Reprovider.Interval"] = KUBO_INTERVAL;
  const { pubsub, namesOverPubsub, ...overrides } = found as Record<string, never>;
  return { overrides, pubsub, namesOverPubsub, names };
}

function decoded(kind: Kind, path: string, value: unknown): unknown {
  const names = path.split(".");
  try {
    return kind.decode(value, { struct: names[0] as string, path: names.slice(1) }, kind.zero);
  } catch (error) {
    throw failure(
      "CONFIG_INVALID",
      { reason: `failure to decode config: ${path}: ${(error as Error).message}` },
      error,
    );
  }
}

/** Returns the value at a path. Accepts keys in another letter case, as Go does. */
function valueAt(document: unknown, [name, ...below]: readonly string[]): unknown {
  if (name === undefined) return document;
  if (!isObject(document)) return undefined;
  const key = Object.hasOwn(document, name)
    ? name
    : Object.keys(document).find((each) => each.toLowerCase() === name.toLowerCase());
  return key === undefined ? undefined : valueAt(document[key], below);
}

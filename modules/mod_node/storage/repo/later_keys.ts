/**
 * Keys by which later versions of the reference (Kubo) set what version 0.9 has at another place. Where a config has such
 * a key it counts, and not the older one. The table on the reference page is derived from this one.
 */
import { NodeError } from "../../util/errors.ts";
import { isObject, type JsonObject } from "./json.ts";
import type { ConfigPath, ConfigValue } from "./schema.ts";
import { duration, flag, type Kind, optionalText } from "./value_kinds.ts";

/** What they say, where they say something. */
export interface LaterSettings {
  readonly overrides: { readonly [P in ConfigPath]?: ConfigValue<P> };
  readonly pubsub: boolean | undefined;
  readonly namesOverPubsub: boolean | undefined;
  /** The later key that sets a key of version 0.9. */
  readonly names: ReadonlyMap<ConfigPath, string>;
}

interface LaterKey {
  readonly kind: Kind;
  /** What of version 0.9 it stands for: a key, or a choice of whoever starts the node. */
  readonly instead: ConfigPath | "pubsub" | "namesOverPubsub";
  /** The value there; by default the same. Undefined where this one says nothing. */
  readonly meaning?: (value: never) => unknown;
  /** One sentence for the reference page. */
  readonly help: string;
}

export const laterKeys: Readonly<Record<string, LaterKey>> = {
  "Pubsub.Enabled": {
    kind: flag,
    instead: "pubsub",
    help: "Publish and subscribe, unless the option `node_pubsub` or the flag `--enable-pubsub-experiment` is given.",
  },
  "Ipns.UsePubsub": {
    kind: flag,
    instead: "namesOverPubsub",
    help: "Names over publish and subscribe, unless `node_namesys_pubsub` or `--enable-namesys-pubsub` is given. Switches both on.",
  },
  "Routing.AcceleratedDHTClient": {
    kind: flag,
    instead: "Experimental.AcceleratedDHTClient",
    help: "Announce in batches.",
  },
  "Swarm.RelayClient.Enabled": {
    kind: flag,
    instead: "Swarm.EnableAutoRelay",
    help: "Be reached through a relay. Off unless it is true, here as in 0.9.",
  },
  "Swarm.RelayService.Enabled": {
    kind: flag,
    instead: "Swarm.EnableRelayHop",
    help: "Be a relay for others. Off unless it is true, here as in 0.9.",
  },
  "Provide.Enabled": {
    kind: flag,
    instead: "Experimental.StrategicProviding",
    meaning: (value: boolean) => !value,
    help: "`false`: announce nothing unless told to.",
  },
  "Provide.Strategy": {
    kind: optionalText,
    instead: "Reprovider.Strategy",
    meaning: (value: string) => value.replace(/^flat$/, "all"),
    help: "`all`, `roots`, or `pinned`, `mfs` and `pinned+mfs`, which `+entities` confines to the roots of files and what is no file; `+unique` changes nothing. `flat` is `all`.",
  },
  "Provide.DHT.Interval": {
    kind: duration,
    instead: "Reprovider.Interval",
    meaning: (value: string) => (value === "" ? "0" : value),
    help: "How often it is announced what is here; `0` is never.",
  },
};

/** How often a repo of Kubo is announced that does not say it; one of version 0.9 says it, or means 12h. */
const KUBO_INTERVAL = "22h";

/** @throws NodeError that names a key whose value is of another kind */
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
    throw new NodeError(`failure to decode config: ${path}: ${(error as Error).message}`, { cause: error });
  }
}

/** As Go reads documents: a key in other letters will do. */
function valueAt(document: unknown, [name, ...below]: readonly string[]): unknown {
  if (name === undefined) return document;
  if (!isObject(document)) return undefined;
  const key = Object.hasOwn(document, name)
    ? name
    : Object.keys(document).find((each) => each.toLowerCase() === name.toLowerCase());
  return key === undefined ? undefined : valueAt(document[key], below);
}

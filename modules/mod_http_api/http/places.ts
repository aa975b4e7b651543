/** Places of the API beside its own: addresses and mounts of another level, on the same node (option `api_listeners`). */
import { invalidOption } from "../../../core/index.ts";
import type { Module, NetEndpoint } from "../../../core/types.ts";
import { type LevelName, levels } from "../rpc/levels.ts";
import { endpointOf } from "./addresses.ts";
import type { ApiSettings } from "./api.ts";
import { local, openAt, withFields } from "./listeners.ts";
import { mountApi } from "./mount.ts";

/** One item of the option. */
export type Place =
  /** A multiaddr: a TCP port or a Unix socket. */
  | { readonly level: LevelName; readonly address: string; readonly endpoint: NetEndpoint }
  /** On the ports of the host, before `/api/v0`: `/today`. */
  | { readonly level: LevelName; readonly base: string };

const END = "/api/v0";

/** Reads the option `api_listeners`. @throws {ModhostError} OPTION_INVALID */
export function placesFrom(option: unknown): Place[] {
  const items = option === undefined ? [] : option;
  if (!Array.isArray(items)) throw fault(option, "it must be a list");
  const places = items.map(placeFrom);
  const names = places.map((place) => ("base" in place ? place.base : place.address));
  const twice = names.find((name, at) => names.indexOf(name) < at && !name.endsWith("/tcp/0"));
  if (twice !== undefined) throw fault(option, `the places must differ: ${twice} is there twice`);
  return places;
}

function placeFrom(item: unknown): Place {
  const { address, mount, level, ...others } = (typeof item === "object" && item !== null ? item : {}) as Fields;
  const name = String(level);
  const isWhole = Object.keys(others).length === 0 && (address === undefined) !== (mount === undefined);
  if (!isWhole || !isLevel(name)) throw fault(item);
  if (typeof address === "string") {
    const endpoint = endpointOf(address);
    if (endpoint === undefined)
      throw fault(item, "the address must be such as /ip4/127.0.0.1/tcp/5001 or /unix/run/api.sock");
    return { level: name, address, endpoint };
  }
  if (typeof mount !== "string" || !/^(\/[\w.~-]+)+\/api\/v0$/.test(mount)) {
    throw fault(item, `the mount must be a path that ends with ${END}, such as /today${END}`);
  }
  return { level: name, base: mount.slice(0, -END.length) };
}

type Fields = { readonly address?: unknown; readonly mount?: unknown; readonly level?: unknown };

const isLevel = (name: string): name is LevelName => name in levels;

const fault = (
  value: unknown,
  allowed = 'each item must be { address, level } or { mount, level }, where level is "0.9" or "0.43"',
) => invalidOption("api_listeners", value, allowed);

/** Opens them; one whose address cannot be opened makes the start fail. `settingsAt` gives the settings of a level. */
export function openPlaces(
  module: Module,
  places: readonly Place[],
  settingsAt: (level: LevelName) => ApiSettings,
): void {
  for (const [at, place] of places.entries()) {
    const settings = settingsAt(place.level);
    if ("base" in place) {
      mountApi(module, withFields(settings, { base: place.base }));
      continue;
    }
    const { endpoint } = place;
    const own = "path" in endpoint ? local(settings) : settings;
    openAt(module, { name: `http_api_place_${at}`, settings: own, pages: "rpc-page" }, [
      { ...endpoint, required: true },
    ]);
  }
}

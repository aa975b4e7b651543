/**
 * Extra listeners of the API, in addition to its own address: addresses and mounts at another
 * level, on the same node (option `api_listeners`).
 */
import { pathFault } from "../../../core/http/index.ts";
import { invalidOption } from "../../../core/index.ts";
import type { Module, NetEndpoint } from "../../../core/types.ts";
import { type LevelName, levels } from "../rpc/levels.ts";
import { endpointOf } from "./addresses.ts";
import type { ApiSettings } from "./api.ts";
import { local, openAt, withFields } from "./listeners.ts";
import { mountApi } from "./mount.ts";

/** One item of the option. */
export type ExtraListener =
  /** A multiaddr of a TCP port or a Unix socket. */
  | { readonly level: LevelName; readonly address: string; readonly endpoint: NetEndpoint }
  /** A path on the ports of the host, in front of `/api/v0`, such as `/kubo`. */
  | { readonly level: LevelName; readonly base: string };

const END = "/api/v0";

/** Reads the option `api_listeners`. @throws {ModhostError} OPTION_INVALID */
export function extraListenersFrom(option: unknown): ExtraListener[] {
  const items = option === undefined ? [] : option;
  if (!Array.isArray(items)) throw fault(option, "it must be a list");
  const listeners = items.map(extraListenerFrom);
  const names = listeners.map((listener) => ("base" in listener ? listener.base : listener.address));
  const twice = names.find((name, at) => names.indexOf(name) < at && !name.endsWith("/tcp/0"));
  if (twice !== undefined) throw fault(option, `the addresses and mounts must differ: ${twice} occurs twice`);
  return listeners;
}

function extraListenerFrom(item: unknown): ExtraListener {
  const { address, mount, level, ...others } = (typeof item === "object" && item !== null ? item : {}) as Fields;
  const name = String(level);
  const isWhole = Object.keys(others).length === 0 && (address === undefined) !== (mount === undefined);
  if (!isWhole || !isLevel(name)) throw fault(item);
  if (typeof address === "string") {
    const endpoint = endpointOf(address);
    if (endpoint === undefined)
      throw fault(item, "the address must have a form such as /ip4/127.0.0.1/tcp/5001 or /unix/run/api.sock");
    return { level: name, address, endpoint };
  }
  if (typeof mount !== "string" || !/^(\/[\w.~-]+)+\/api\/v0$/.test(mount) || pathFault(mount) !== undefined) {
    throw fault(item, `the mount must be a path that ends with ${END}, such as /kubo${END}`);
  }
  return { level: name, base: mount.slice(0, -END.length) };
}

type Fields = { readonly address?: unknown; readonly mount?: unknown; readonly level?: unknown };

const isLevel = (name: string): name is LevelName => name in levels;

const fault = (
  value: unknown,
  allowed = 'each item must be { address, level } or { mount, level }, where level is "0.9" or "0.43"',
) => invalidOption("api_listeners", value, allowed);

/**
 * Opens the listeners. The start fails if an address cannot be opened. `settingsAt` returns the
 * settings of a level.
 */
export function openExtraListeners(
  module: Module,
  listeners: readonly ExtraListener[],
  settingsAt: (level: LevelName) => ApiSettings,
): void {
  for (const [at, listener] of listeners.entries()) {
    const settings = settingsAt(listener.level);
    if ("base" in listener) {
      mountApi(module, withFields(settings, { base: listener.base }));
      continue;
    }
    const { endpoint } = listener;
    const own = "path" in endpoint ? local(settings) : settings;
    openAt(module, { name: `http_api_place_${at}`, settings: own, pages: "rpc-page" }, [
      { ...endpoint, required: true },
    ]);
  }
}

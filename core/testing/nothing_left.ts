import { AssertionError } from "node:assert";
import { setTimeout as sleep } from "node:timers/promises";
import type { Host } from "../host.ts";
import type { HttpModule } from "../http/module.ts";
import { moduleName } from "../util/module_name.ts";
import { type Handles, handlesNow, more } from "./handles.ts";

/**
 * The open resources before a module was loaded, by host and module, as recorded by
 * `TestHost.load`.
 */
const noted = new WeakMap<Host, Map<string, Handles>>();

/** Records the open resources before a module is loaded. */
export function noteHandles(host: Host, entry: string): void {
  const marks = noted.get(host) ?? new Map<string, Handles>();
  noted.set(host, marks.set(moduleName(entry), handlesNow(host)));
}

export interface LeftoverOptions {
  /**
   * The open resources before the module was loaded, from `handlesNow(host)`. Everything that was
   * added since counts as left, so nothing else should open or close resources meanwhile. Default:
   * as recorded by `TestHost.load(module)`; for a module that was loaded in another way, only the
   * resources that the host knows are checked.
   */
  readonly since?: Handles;
  /** Seconds that closing may take. Default 2. */
  readonly within?: number;
}

/**
 * Fails if something is left of an unloaded module: in the host (the module itself, routes, hooks,
 * items, timers, shared tables, services and their connections, failed steps of the unload) or,
 * compared with `since`, in the process (timers, servers, sockets, watchers, child processes, open
 * files, listeners of `process`). Handles with `unref` are not detected.
 * @throws {AssertionError} naming each thing that is left
 * @throws {ModhostError} MODULE_UNKNOWN for a module that was never loaded here
 */
export async function assertNothingLeft(
  target: Host | { readonly host: Host },
  module: string,
  options: LeftoverOptions = {},
): Promise<void> {
  const host = "host" in target ? target.host : target;
  const name = moduleName(module);
  const { since = noted.get(host)?.get(name), within = 2 } = options;
  const look = () => [...inHost(host, name), ...(since === undefined ? [] : more(handlesNow(host), since))];
  const end = performance.now() + within * 1000;
  let left = look();
  while (left.length > 0 && !left.some(isLoaded) && performance.now() < end) {
    await sleep(10);
    left = look();
  }
  if (left.length === 0) return;
  const verdict = left.some(isLoaded) ? "is loaded: unload it first. It holds" : "has left something behind:";
  const message = `The module ${name} ${verdict} ${left.join(", ")}`;
  throw new AssertionError({ message, actual: left, expected: [], operator: "deepEqual" });
}

const isLoaded = (line: string) => line.startsWith("the module itself (loaded");

/** Returns what the host knows of the module, and its routes if HTTP is served. */
function inHost(host: Host, name: string): string[] {
  const isServed = host.modules().some((module) => module.name === "http" && module.status === "loaded");
  const routes = isServed ? host.exports<HttpModule>("http").routes() : [];
  const own = routes.filter(({ module }) => module === name).map(({ method, path }) => `route ${method} ${path}`);
  return [...host.residue(name), ...own];
}

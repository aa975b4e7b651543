/**
 * The messages of two server processes while one takes over from the other. The previous process
 * calls the next one.
 */
import type { Host, SavedState } from "../../host.ts";
import type { PausedPort } from "../../ports/inherited.ts";

/** Set in the environment of a process that is to take over from its parent. */
export const TAKEOVER_VARIABLE = "MODHOST_SUCCESSOR";

/** A port. Its listening socket was sent before, with this key. */
export interface HandedPort extends Pick<PausedPort, "name" | "requested"> {
  readonly key: string;
}

/**
 * The ports and states that the previous process hands over after it has stopped. The next process
 * may then open the repo.
 */
export interface HandedServer {
  readonly ports: readonly HandedPort[];
  readonly states: readonly SavedState[];
}

/** The report of the next process once it has loaded everything without opening a port. */
export interface Checked {
  readonly version: string;
  readonly data: string;
  readonly config: { readonly isEmpty: boolean; readonly file: string | undefined };
  readonly failed: readonly { readonly name: string; readonly host: string; readonly note: string }[];
}

/** Checks that no module of `loaded` has failed. @throws {Error} names the first one that has */
export function assertNoneLost(failed: Checked["failed"], loaded: ReadonlySet<string>): void {
  const lost = failed.find(({ name }) => loaded.has(name));
  if (lost !== undefined) throw new Error(`the module ${lost.name} does not load there: ${lost.note}`);
}

/** Returns the names of the loaded modules of a host. */
export function loadedIn(host: Host): Set<string> {
  return new Set(host.modules().flatMap(({ name, status }) => (status === "loaded" ? [name] : [])));
}

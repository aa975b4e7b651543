/** Declarations of configuration keys. */
import { bool, type Kind } from "./value_kinds.ts";

/**
 * When a changed value takes effect: immediately (`live`), at the next `start` of the node, or
 * never (`none`), because this node does not use it.
 */
export type Applies = "live" | "start" | "none";

export interface ConfigKey<T = unknown> {
  readonly kind: Kind<T>;
  readonly applies: Applies;
  /**
   * The value in a new repo. Undefined: the key is left out of a new repo, and whenever it has its
   * zero value.
   */
  readonly init: T | undefined;
  /** One or two sentences for the reference page. */
  readonly help: string;
}

export const key = <T>(applies: Applies, kind: Kind<T>, init: T | undefined, help: string): ConfigKey<T> => {
  return { applies, kind, init, help };
};
export const experiment = (applies: Applies, help: string) => key(applies, bool, false, help);

/** Objects whose Go name differs from their last key. */
export const structNames: ReadonlyMap<string, string> = new Map([
  ["", "Config"],
  ["Swarm", "SwarmConfig"],
  ["Swarm.Transports.Network", ""],
  ["Swarm.Transports.Security", ""],
  ["Swarm.Transports.Multiplexers", ""],
  ["AutoNAT", "AutoNATConfig"],
  ["Pubsub", "PubsubConfig"],
  ["Experimental", "Experiments"],
]);

/** Sections that version 0.9 does not have. They are left out while they are empty. */
export const laterSections: ReadonlySet<string> = new Set([
  "AutoConf",
  "Bitswap",
  "HTTPRetrieval",
  "Import",
  "Internal",
  "Provide",
  "Provide.DHT",
  "Swarm.RelayService",
  "Swarm.ResourceMgr",
  "Version",
]);

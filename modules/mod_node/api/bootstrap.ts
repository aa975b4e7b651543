/** The list of bootstrap peers. Changes take effect at once. */

import {
  addBootstrap,
  addDefaultBootstrap,
  clearBootstrap,
  listBootstrap,
  removeBootstrap,
  writtenBootstrap,
} from "../network/swarm/bootstrap_list.ts";
import { type Multiaddr, parseMultiaddr } from "../network/swarm/multiaddr.ts";
import type { LowLevelNode } from "../node/low_level_node.ts";
import { AUTO } from "../storage/repo/auto_values.ts";
import { type Address, type CallOptions, listOf } from "./common.ts";

export interface BootstrapAddOptions extends CallOptions {
  /** Same as `reset`; no address is needed. */
  readonly default?: boolean | undefined;
  /** Also return the addresses as they were given. */
  readonly texts?: boolean | undefined;
}

export interface BootstrapRmOptions extends CallOptions {
  /** Same as `clear`; no address is needed. */
  readonly all?: boolean | undefined;
  /** Also return the addresses as the configuration has them, including the word `auto`. */
  readonly texts?: boolean | undefined;
}

export interface BootstrapResult {
  /** Multiaddresses, each ending in the id of the peer. */
  readonly Peers: readonly Multiaddr[];
  /**
   * The same addresses as they were given, or as the configuration has them, including the word
   * `auto`. Present only with the option `texts`.
   */
  readonly texts?: readonly string[];
}

type Addresses = Address | readonly Address[];

export interface BootstrapApi {
  /**
   * Resolves to the added addresses. @throws NodeError for an invalid address, before anything is
   * stored
   */
  add(address?: Addresses, options?: BootstrapAddOptions): Promise<BootstrapResult>;
  /** Resolves to the removed addresses; `/p2p/<id>` removes all addresses of a peer. */
  rm(address?: Addresses, options?: BootstrapRmOptions): Promise<BootstrapResult>;
  list(options?: CallOptions): Promise<BootstrapResult>;
  /**
   * Resolves to the list as the configuration has it, in which the word `auto` stands for the peers
   * of `AutoConf.URL`.
   */
  written(options?: CallOptions): Promise<readonly string[]>;
  /** Removes all addresses, and resolves to them. */
  clear(options?: Omit<BootstrapRmOptions, "all">): Promise<BootstrapResult>;
  /** Adds the default bootstrap peers of the reference, and resolves to them. */
  reset(options?: CallOptions): Promise<BootstrapResult>;
}

export function bootstrapApi({ repo: { config } }: LowLevelNode): BootstrapApi {
  return {
    async add(given = [], { default: builtIn, texts } = {}) {
      const added = await (builtIn === true
        ? addDefaultBootstrap(config)
        : addBootstrap(config, listOf(given).map(String)));
      return result(added, texts);
    },
    async rm(given = [], { all, texts } = {}) {
      const removed = all === true ? clearBootstrap(config) : removeBootstrap(config, listOf(given).map(String));
      return result(await removed, texts);
    },
    list: async () => result(listBootstrap(config)),
    written: async () => writtenBootstrap(config),
    clear: async ({ texts } = {}) => result(await clearBootstrap(config), texts),
    reset: async () => result(await addDefaultBootstrap(config)),
  };
}

const result = (texts: readonly string[], withTexts = false): BootstrapResult => ({
  Peers: texts.filter((text) => text !== AUTO).map(parseMultiaddr),
  ...(withTexts && { texts }),
});

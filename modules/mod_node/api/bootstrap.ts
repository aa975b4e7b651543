/** The peers that are dialled first. What changes here is used from the next start on. */

import type { LowLevelNode } from "../low_level_node.ts";
import {
  addBootstrap,
  addDefaultBootstrap,
  clearBootstrap,
  listBootstrap,
  removeBootstrap,
} from "../network/swarm/bootstrap_list.ts";
import { type Multiaddr, parseMultiaddr } from "../network/swarm/multiaddr.ts";
import { type Address, type CallOptions, listOf } from "./common.ts";

export interface BootstrapAddOptions extends CallOptions {
  /** As `reset`; no address is needed then. */
  readonly default?: boolean | undefined;
  /** Tell the addresses as they were written, too. */
  readonly texts?: boolean | undefined;
}

export interface BootstrapRmOptions extends CallOptions {
  /** As `clear`; no address is needed then. */
  readonly all?: boolean | undefined;
}

export interface BootstrapResult {
  /** Each ends in the id of its peer. */
  readonly Peers: readonly Multiaddr[];
  /** The same as they were written, where the option of this name asks for it. */
  readonly texts?: readonly string[];
}

type Addresses = Address | readonly Address[];

export interface BootstrapApi {
  /** Resolves to those that were added. @throws NodeError of what is no address of a peer, before anything is stored */
  add(address?: Addresses, options?: BootstrapAddOptions): Promise<BootstrapResult>;
  /** Resolves to those that went; `/p2p/<id>` stands for all addresses of a peer. */
  rm(address?: Addresses, options?: BootstrapRmOptions): Promise<BootstrapResult>;
  list(options?: CallOptions): Promise<BootstrapResult>;
  /** Empties the list. Resolves to what was in it. */
  clear(options?: CallOptions): Promise<BootstrapResult>;
  /** Adds those that a new repo has. Resolves to these. */
  reset(options?: CallOptions): Promise<BootstrapResult>;
}

export function bootstrapApi({ repo: { config } }: LowLevelNode): BootstrapApi {
  return {
    async add(given = [], { default: builtIn, texts } = {}) {
      const added = await (builtIn === true
        ? addDefaultBootstrap(config)
        : addBootstrap(config, listOf(given).map(String)));
      return texts === true ? { ...result(added), texts: added } : result(added);
    },
    async rm(given = [], { all } = {}) {
      return result(await (all === true ? clearBootstrap(config) : removeBootstrap(config, listOf(given).map(String))));
    },
    list: async () => result(listBootstrap(config)),
    clear: async () => result(await clearBootstrap(config)),
    reset: async () => result(await addDefaultBootstrap(config)),
  };
}

const result = (texts: readonly string[]): BootstrapResult => ({ Peers: texts.map(parseMultiaddr) });

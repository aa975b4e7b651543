/** Commands that need no network: those for storage, keys, configuration and the node itself. */

import { table } from "#modules/mod_http_api/commands/index.ts";
import type { Command } from "#modules/mod_http_api/rpc/command.ts";

const network =
  /^(bitswap|bootstrap|dht|dns|name|p2p|pin\/remote|ping|pubsub|stats\/(bitswap|bw|dht|provide)|swarm)(\/|$)|^mount$/;

export const storageCommands: readonly (readonly [path: string, command: Command])[] = table
  .commands()
  .filter(([path]) => !network.test(path));

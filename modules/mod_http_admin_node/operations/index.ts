/** All operations of the node. */
import { bitswapOperations } from "./bitswap.ts";
import { configOperations } from "./config.ts";
import { contentOperations } from "./contents.ts";
import { exploreOperations } from "./explore.ts";
import { filesChanges, filesOperations } from "./files.ts";
import { keyOperations, nameOperations } from "./keys.ts";
import type { NodeOperation } from "./operation.ts";
import { peerOperations } from "./peers.ts";
import { pinOperations } from "./pins.ts";
import { remotePinOperations } from "./remote_pins.ts";
import { repoOperations } from "./repo.ts";
import { statusOperations } from "./status.ts";
import { storeOperations } from "./store.ts";

export const operations: readonly NodeOperation[] = [
  ...statusOperations,
  ...storeOperations,
  ...peerOperations,
  ...repoOperations,
  ...pinOperations,
  ...remotePinOperations,
  ...keyOperations,
  ...nameOperations,
  ...bitswapOperations,
  ...configOperations,
  ...filesOperations,
  ...filesChanges,
  ...contentOperations,
  ...exploreOperations,
];

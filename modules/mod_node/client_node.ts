/** Builds the client interface on top of the node's components. */

import { nodeApi } from "./api/index.ts";
import { nodeFigures } from "./figures.ts";
import type { LowLevelNode } from "./low_level_node.ts";
import type { Node } from "./types.ts";

export function clientNode(lowLevel: LowLevelNode): Node {
  const close = () => lowLevel.close();
  return {
    ...nodeApi(lowLevel),
    lowLevel,
    figures: nodeFigures(lowLevel),
    offline: lowLevel.offline,
    goOnline: () => lowLevel.goOnline(),
    close,
    stop: close,
    [Symbol.asyncDispose]: close,
  };
}

/** Builds the client interface on top of the node's components. */

import { nodeApi } from "../api/index.ts";
import type { LowLevelNode } from "../node/low_level_node.ts";
import { metricsOf } from "../node/node_metrics.ts";
import type { Node } from "./types.ts";

export function clientNode(lowLevel: LowLevelNode): Node {
  const close = () => lowLevel.close();
  return {
    ...nodeApi(lowLevel),
    lowLevel,
    metrics: metricsOf(lowLevel),
    offline: lowLevel.offline,
    goOnline: () => lowLevel.goOnline(),
    close,
    stop: close,
    [Symbol.asyncDispose]: close,
  };
}

/** Information about the system. */
import type { LowLevelNode } from "../low_level_node.ts";
import { type SystemFacts, systemFacts } from "../util/system_facts.ts";
import type { CallOptions } from "./common.ts";

export interface DiagApi {
  /** Facts about the system that the node runs on. */
  sys(options?: CallOptions): Promise<SystemFacts>;
}

export function diagApi(node: LowLevelNode): DiagApi {
  return { sys: () => systemFacts(node.repo.path, node.online) };
}

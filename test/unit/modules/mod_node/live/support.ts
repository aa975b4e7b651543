/** A node whose configuration changes while it runs. */
import type { LowLevelNode } from "#node/node/low_level_node.ts";
import type { WaitingKey } from "#node/storage/repo/in_force.ts";

/** Writes a value as the command `config` does. Returns the keys that do not apply yet. */
export async function change(node: LowLevelNode, key: string, value: unknown): Promise<readonly WaitingKey[]> {
  await node.repo.config.set(key, () => value);
  return node.repo.config.waiting;
}

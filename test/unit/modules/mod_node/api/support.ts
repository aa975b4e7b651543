/** Opens a node in memory, as programs get it. */
import type { TestContext } from "node:test";
import { createNode, memoryStores, type Node } from "modhost/node";
import { emptyFolder } from "../storage/repo/support.ts";

/** A node without a network, which is closed when the test ends. */
export async function memoryNode(t: TestContext): Promise<Node> {
  const node = await createNode({ repo: await emptyFolder(t), offline: true, stores: async () => memoryStores() });
  t.after(() => node.close());
  return node;
}

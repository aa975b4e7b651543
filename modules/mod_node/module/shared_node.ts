/** A node that outlives the module instance that opened it: a reload hands it on. */
import type { Node } from "modhost/node";

export class SharedNode {
  readonly node: Node;
  /** What it was opened with: only the same settings can go on with it. */
  readonly settings: string;
  #holders = 0;

  constructor(node: Node, settings: string) {
    this.node = node;
    this.settings = settings;
  }

  /** The function that is returned lets go; the last one closes the node. */
  hold(): () => Promise<void> {
    this.#holders += 1;
    let held = true;
    return async () => {
      if (!held) return;
      held = false;
      this.#holders -= 1;
      if (this.#holders === 0) await this.node.close();
    };
  }
}

/** A reference-counted node, which a reload passes from the old module instance to the new one. */
import type { Node } from "modhost/node";

export class SharedNode {
  readonly node: Node;
  /**
   * The settings it was opened with, serialized. A reload with other settings opens another node.
   */
  readonly settings: string;
  #holders = 0;

  constructor(node: Node, settings: string) {
    this.node = node;
    this.settings = settings;
  }

  /** Adds a reference. The returned function drops it; dropping the last one closes the node. */
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

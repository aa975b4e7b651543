/** A reference-counted node, which a reload passes from the old module instance to the new one. */
import type { Node } from "modhost/node";

export class SharedNode {
  readonly node: Node;
  /**
   * The settings it was opened with, serialized. A reload with other settings opens another node.
   */
  readonly settings: string;
  #references = 0;

  constructor(node: Node, settings: string) {
    this.node = node;
    this.settings = settings;
  }

  /** Adds a reference. The returned function drops it; dropping the last one closes the node. */
  hold(): () => Promise<void> {
    this.#references += 1;
    let isReferenced = true;
    return async () => {
      if (!isReferenced) return;
      isReferenced = false;
      this.#references -= 1;
      if (this.#references === 0) await this.node.close();
    };
  }
}

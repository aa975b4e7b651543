/** Names that people give to pins. The node itself has none: they are kept beside, by the text of the CID. */
import { type Node, parseCid, prefixedStore } from "modhost/node";

const PREFIX = "modules/http_admin_node/pin_names/";
/** Characters. */
export const MAX_NAME = 255;

export class PinNames {
  readonly #node: Node;
  #names: Promise<Map<string, string>> | undefined;

  constructor(node: Node) {
    this.#node = node;
  }

  /** By the text of the CID. */
  all(): Promise<ReadonlyMap<string, string>> {
    return this.#all();
  }

  /** An empty name is none. */
  async set(cid: string, name: string): Promise<void> {
    const names = await this.#all();
    const bytes = new TextEncoder().encode(name);
    await this.#store.transaction((writer) => {
      if (name === "") writer.delete(cid);
      else writer.put(cid, bytes);
    });
    if (name === "") names.delete(cid);
    else names.set(cid, name);
  }

  get #store() {
    return prefixedStore(this.#node.lowLevel.metadata, PREFIX);
  }

  #all(): Promise<Map<string, string>> {
    // Other hosts of a shared store name pins as well.
    if (this.#node.lowLevel.shared !== undefined) return this.#read();
    this.#names ??= this.#read().catch((error: unknown) => {
      this.#names = undefined;
      throw error;
    });
    return this.#names;
  }

  /** Names whose pins were removed by others go. */
  async #read(): Promise<Map<string, string>> {
    const store = this.#store;
    const names = new Map<string, string>();
    const left: string[] = [];
    for await (const [cid, bytes] of store.range()) {
      if ((await this.#node.lowLevel.pins.mode(parseCid(cid))) === undefined) left.push(cid);
      else names.set(cid, new TextDecoder().decode(bytes));
    }
    if (left.length > 0) {
      await store.transaction((writer) => {
        for (const cid of left) writer.delete(cid);
      });
    }
    return names;
  }
}

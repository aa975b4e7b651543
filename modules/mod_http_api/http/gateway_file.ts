/** The file `gateway` of the repo: where content is found, while a module serves it at `Addresses.Gateway`. */
import type { NodeModule } from "modhost/node";
import { reasonOf } from "../../../core/index.ts";
import type { Module } from "../../../core/types.ts";
import { reachable, urlOf } from "./addresses.ts";

export class GatewayFile {
  readonly #node: NodeModule;
  readonly #addresses: () => readonly string[];
  /** Modules that serve content there. */
  #servers = 0;
  #isKept = false;
  #writing = Promise.resolve();

  /** @param addresses multiaddrs that are listened on now */
  constructor(module: Module, node: NodeModule, addresses: () => readonly string[]) {
    this.#node = node;
    this.#addresses = addresses;
    const warn = (error: unknown) => module.log.warn("The file gateway cannot be written: %s", reasonOf(error));
    const count = (by: 1 | -1) => {
      this.#servers += by;
      return this.#write().catch(warn);
    };
    module.handle_items(
      "gateway-page",
      () => void count(1),
      () => count(-1),
    );
  }

  /** From now on it tells what is so. */
  keep(): Promise<void> {
    this.#isKept = true;
    return this.#write();
  }

  /** It is removed, and stays so. */
  leave(): Promise<void> {
    this.#isKept = false;
    return this.#write();
  }

  /** One after the other: the last one is right. */
  #write(): Promise<void> {
    this.#writing = this.#writing
      .catch(() => undefined)
      .then(() => {
        const isThere = this.#isKept && this.#servers > 0;
        const [url] = isThere ? this.#addresses().flatMap((each) => urlOf(reachable(each)) ?? []) : [];
        return this.#node.isOpen ? this.#node.lowLevel.repo.announceGateway(url) : undefined;
      });
    return this.#writing;
  }
}

/**
 * The file `gateway` of the repo names the address that serves content. It exists while a module
 * serves content at `Addresses.Gateway`.
 */
import type { NodeModule } from "modhost/node";
import { reasonOf } from "../../../core/index.ts";
import type { Module } from "../../../core/types.ts";
import { reachable, urlOf } from "./addresses.ts";

export class GatewayFile {
  readonly #node: NodeModule;
  readonly #addresses: () => readonly string[];
  /** Number of modules that serve content at these addresses. */
  #servers = 0;
  #isWanted = false;
  #writing = Promise.resolve();

  /** @param addresses returns the multiaddrs that are currently listened on */
  constructor(module: Module, node: NodeModule, addresses: () => readonly string[]) {
    this.#node = node;
    this.#addresses = addresses;
    const warn = (error: unknown) => module.log.warn("Cannot write the file gateway of the repo: %s", reasonOf(error));
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

  /** Writes the file, and updates it from now on. */
  enable(): Promise<void> {
    this.#isWanted = true;
    return this.#write();
  }

  /** Removes the file permanently. */
  disable(): Promise<void> {
    this.#isWanted = false;
    return this.#write();
  }

  /** Writes run one after the other, so that the last state wins. */
  #write(): Promise<void> {
    this.#writing = this.#writing
      .catch(() => undefined)
      .then(() => {
        const isThere = this.#isWanted && this.#servers > 0;
        const [url] = isThere ? this.#addresses().flatMap((each) => urlOf(reachable(each)) ?? []) : [];
        return this.#node.isOpen ? this.#node.lowLevel.repo.announceGateway(url) : undefined;
      });
    return this.#writing;
  }
}

/**
 * The open connections of the host: assigns them to providers, and closes those of unloaded
 * modules.
 */
import type { Socket } from "node:net";
import { reasonOf } from "../util/errors.ts";
import { actAs } from "../util/usage.ts";
import { firstBytes } from "./first_bytes.ts";
import { current, type Provider, type Service } from "./service.ts";

/** A connection that was passed to a provider. */
interface Accepted {
  readonly provider: Provider;
  readonly service: Service;
  /** Whether it came in through a port of the host. */
  readonly isFromPort: boolean;
}

export class Connections {
  readonly #open = new Map<Socket, Accepted>();

  /** Passes a connection to the newest provider of a service; without one it is closed. */
  accept(service: Service, socket: Socket, isFromPort: boolean): void {
    const provider = current(service);
    if (provider === undefined) {
      socket.destroy();
      return;
    }
    this.#open.set(socket, { provider, service, isFromPort });
    socket.once("close", () => this.#open.delete(socket));
    socket.allowHalfOpen = provider.item.half_open === true;
    try {
      actAs(provider.owner, () => provider.item.onconnect(socket));
    } catch (error) {
      provider.owner.log.error("A connection was dropped: %s", reasonOf(error));
      socket.destroy();
    }
  }

  /** Returns the number of open connections that came in through ports. */
  count(): number {
    return [...this.#open.values()].filter(({ isFromPort }) => isFromPort).length;
  }

  /**
   * Closes the connections of a module whose services are gone. If another module has taken over a
   * service, its connections stay open.
   */
  hangUp(owner: string): void {
    for (const [socket] of this.#orphans(owner)) socket.destroy();
  }

  /** Returns one line for each connection of a module whose service is gone. */
  orphansOf(owner: string): string[] {
    return this.#orphans(owner).map(([, { service }]) => `connection of service ${service.name}`);
  }

  #orphans(owner: string): [Socket, Accepted][] {
    return [...this.#open].filter(
      ([, { provider, service }]) => provider.owner.name === owner && service.providers.size === 0,
    );
  }

  /** Waits a moment for the first bytes of accepted connections. */
  receivedFirstBytes(): Promise<void> {
    return firstBytes(this.#open);
  }

  /** Closes the remaining connections. */
  destroy(): void {
    for (const socket of this.#open.keys()) socket.destroy();
  }
}

/** The open connections of the host: whose each one is, and what becomes of it when its module leaves. */
import type { Socket } from "node:net";
import { reasonOf } from "../util/errors.ts";
import { firstBytes } from "./first_bytes.ts";
import { current, type Provider, type Service } from "./service.ts";

/** A connection that a provider was given. */
interface Accepted {
  readonly provider: Provider;
  readonly service: Service;
  /** It came in through a port of the host's. */
  readonly isFromPort: boolean;
}

export class Connections {
  readonly #open = new Map<Socket, Accepted>();

  /** Gives a connection to the newest provider of a service; without one it is cut. */
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
      provider.item.onconnect(socket);
    } catch (error) {
      provider.owner.log.error("A connection was dropped: %s", reasonOf(error));
      socket.destroy();
    }
  }

  /** Those that came in through ports and are open. */
  count(): number {
    return [...this.#open.values()].filter(({ isFromPort }) => isFromPort).length;
  }

  /** Cuts those of a module whose services are gone; those of a service that goes on are its successor's. */
  hangUp(owner: string): void {
    for (const [socket] of this.#orphans(owner)) socket.destroy();
  }

  /** A line for each of a module whose service is gone. */
  orphansOf(owner: string): string[] {
    return this.#orphans(owner).map(([, { service }]) => `connection of service ${service.name}`);
  }

  #orphans(owner: string): [Socket, Accepted][] {
    return [...this.#open].filter(
      ([, { provider, service }]) => provider.owner.name === owner && service.providers.size === 0,
    );
  }

  /** Waits for the first bytes of those that were accepted, for a moment. */
  heard(): Promise<void> {
    return firstBytes(this.#open);
  }

  /** Cuts those that are left. */
  destroy(): void {
    for (const socket of this.#open.keys()) socket.destroy();
  }
}

/**
 * The listening sockets of a server. The supervisor keeps them open and does not listen on them
 * itself.
 */
import { closeHandle, type IpcChannel, type SocketHandle } from "../relay/ipc_channel.ts";
import type { PortFacts } from "./messages.ts";

interface RetainedPort {
  readonly facts: PortFacts;
  readonly handle: SocketHandle;
}

export class RetainedPorts {
  readonly #ports = new Map<string, RetainedPort>();

  /**
   * Replaces the ports by those that the primary has open now. It has sent the new sockets before.
   * Returns the services whose sockets have changed.
   */
  replace(ports: readonly PortFacts[], primary: IpcChannel): Set<string> {
    const changed = new Set<string>();
    const keys = new Set(ports.map(({ key }) => key));
    for (const [key, { facts, handle }] of this.#ports) {
      if (keys.has(key)) continue;
      this.#ports.delete(key);
      closeHandle(handle);
      changed.add(facts.name);
    }
    for (const { handle, ...facts } of primary.takeAll(ports)) {
      if (this.#ports.has(facts.key)) {
        // A new primary got this socket from the supervisor, and sends it back with the others.
        closeHandle(handle);
        continue;
      }
      this.#ports.set(facts.key, { facts, handle });
      changed.add(facts.name);
    }
    return changed;
  }

  /**
   * Sends a process the sockets of a service that it does not know. Returns the keys of all sockets
   * of the service.
   */
  give(channel: IpcChannel, service: string, known: readonly string[]): string[] {
    const own = [...this.#ports.values()].filter(({ facts }) => facts.name === service);
    for (const { facts, handle } of own) if (!known.includes(facts.key)) channel.give(facts.key, handle);
    return own.map(({ facts }) => facts.key);
  }

  /** Sends a process all sockets. */
  giveAll(channel: IpcChannel): PortFacts[] {
    for (const [key, { handle }] of this.#ports) channel.give(key, handle);
    return [...this.#ports.values()].map(({ facts }) => facts);
  }

  close(): void {
    for (const { handle } of this.#ports.values()) closeHandle(handle);
    this.#ports.clear();
  }
}

/** The listening sockets of a server, which the supervisor keeps open and nobody of it listens on. */
import type { LentSockets, ListeningHandle } from "../ports/lent.ts";
import { closeHandle, type Link } from "./link.ts";
import type { PortFacts } from "./messages.ts";

interface Kept {
  readonly facts: PortFacts;
  readonly handle: ListeningHandle;
}

export class KeptPorts {
  readonly #kept = new Map<string, Kept>();

  /** What the first process has open now; sockets that are new have come by `link`. Gives the services that have others. */
  replace(ports: readonly PortFacts[], link: Link): Set<string> {
    const changed = new Set<string>();
    const keys = new Set(ports.map(({ key }) => key));
    for (const [key, { facts, handle }] of this.#kept) {
      if (keys.has(key)) continue;
      this.#kept.delete(key);
      closeHandle(handle);
      changed.add(facts.name);
    }
    for (const facts of ports) {
      const handle = link.take(facts.key);
      if (handle === undefined) continue;
      if (this.#kept.has(facts.key)) {
        // The same socket once more, from a process that was given it.
        closeHandle(handle);
        continue;
      }
      this.#kept.set(facts.key, { facts, handle });
      changed.add(facts.name);
    }
    return changed;
  }

  /** Sends a process those of a service that it does not know. */
  give(link: Link, service: string, known: readonly string[]): Pick<LentSockets, "keys"> {
    const own = [...this.#kept.values()].filter(({ facts }) => facts.name === service);
    for (const { facts, handle } of own) if (!known.includes(facts.key)) link.give(facts.key, handle);
    return { keys: own.map(({ facts }) => facts.key) };
  }

  /** Sends a process all of them. */
  giveAll(link: Link): PortFacts[] {
    for (const [key, { handle }] of this.#kept) link.give(key, handle);
    return [...this.#kept.values()].map(({ facts }) => facts);
  }

  close(): void {
    for (const { handle } of this.#kept.values()) closeHandle(handle);
    this.#kept.clear();
  }
}

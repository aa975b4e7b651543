/** Which connections have been told by the other side who it is and what it speaks. */
import type { Connection, IdentifyResult, Libp2p } from "@libp2p/interface";
import { raceSignal } from "../../util/async/abortable.ts";

/** Milliseconds after which one that says nothing counts as told. */
const patience = 5000;

export class IdentifyWaiter {
  readonly #known = new WeakSet<Connection>();
  readonly #waiting = new Map<Connection, PromiseWithResolvers<void>>();

  constructor(events: Pick<Libp2p, "addEventListener">) {
    events.addEventListener("peer:identify", ({ detail }: CustomEvent<IdentifyResult>) => {
      this.#known.add(detail.connection);
      this.#done(detail.connection);
    });
    events.addEventListener("connection:close", ({ detail }) => this.#done(detail));
  }

  #done(connection: Connection): void {
    this.#waiting.get(connection)?.resolve();
    this.#waiting.delete(connection);
  }

  /** Resolves when it is known, also when the connection ends first. @throws the reason of the signal */
  async wait(connection: Connection, signal?: AbortSignal): Promise<void> {
    if (this.#known.has(connection) || connection.status !== "open") return;
    const waiting = this.#waiting.get(connection) ?? Promise.withResolvers<void>();
    this.#waiting.set(connection, waiting);
    const timer = setTimeout(() => this.#done(connection), patience).unref();
    try {
      await raceSignal(waiting.promise, signal);
    } finally {
      clearTimeout(timer);
    }
  }
}

/**
 * Waits until the identify protocol has run on a connection, after which the peer's id and
 * protocols are known.
 */
import type { Connection, IdentifyResult, Libp2p } from "@libp2p/interface";
import { raceSignal } from "../../util/async/abortable.ts";

/** Milliseconds after which a connection counts as identified even if identify has not finished. */
const TIMEOUT_MS = 10_000;

export class IdentifyWaiter {
  readonly #identified = new WeakSet<Connection>();
  readonly #waiting = new Map<Connection, PromiseWithResolvers<void>>();

  constructor(events: Pick<Libp2p, "addEventListener">) {
    events.addEventListener("peer:identify", ({ detail }: CustomEvent<IdentifyResult>) => {
      this.#identified.add(detail.connection);
      this.#done(detail.connection);
    });
    events.addEventListener("connection:close", ({ detail }) => this.#done(detail));
  }

  #done(connection: Connection): void {
    this.#waiting.get(connection)?.resolve();
    this.#waiting.delete(connection);
  }

  /**
   * Resolves when the peer is identified, or the connection ends earlier. @throws the reason of the
   * signal
   */
  async wait(connection: Connection, signal?: AbortSignal): Promise<void> {
    if (this.#identified.has(connection) || connection.status !== "open") return;
    const waiting = this.#waiting.get(connection) ?? Promise.withResolvers<void>();
    this.#waiting.set(connection, waiting);
    const timer = setTimeout(() => this.#done(connection), TIMEOUT_MS).unref();
    try {
      await raceSignal(waiting.promise, signal);
    } finally {
      clearTimeout(timer);
    }
  }
}

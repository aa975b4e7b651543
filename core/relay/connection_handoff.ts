/** Connections on their way to another process. They wait while that process is being replaced. */
import type { Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { takeHandle } from "../util/patches/node/handles.ts";
import { closeHandle, type HandedConnection, type IpcChannel, now, type SocketHandle } from "./ipc_channel.ts";
import { refuseConnection } from "./unavailable.ts";

/** Milliseconds that a connection waits for its process. */
const MAX_WAIT_MS = 15_000;

/**
 * Maximum number of connections on their way at a time: enough that none waits for the response to
 * the previous one.
 */
const MAX_SENDING = 64;

/** Milliseconds that the end of this process waits for connections on their way. */
const LAST_MS = 1000;
const POLL_MS = 5;

interface Pending extends HandedConnection {
  readonly late: NodeJS.Timeout;
  /** Settles when the current attempt to send the handle has ended. */
  attempt: Promise<unknown>;
  isRefused: boolean;
}

/**
 * Hands connections over. Each one ends in one of three ways: the process takes it; the process
 * ends first and the next one takes it; or its time runs out and the client gets 503. A handle
 * stays open here until the other end confirms that it has it, because Node.js never reports
 * handles that were queued behind one which an ended process had not acknowledged.
 */
export class ConnectionHandoff {
  readonly #channel: () => IpcChannel | undefined;
  /** Connections that wait, in the order of their arrival. */
  readonly #waiting = new Set<Pending>();
  readonly #sending = new Set<Pending>();

  /** `channel` returns the channel to the process while that process serves. */
  constructor(channel: () => IpcChannel | undefined) {
    this.#channel = channel;
  }

  /** Takes the connection out of a socket of this process. The socket is destroyed. */
  takeFrom(socket: Socket, facts: Pick<HandedConnection, "service" | "head" | "to">): void {
    const handle = takeHandle<SocketHandle & { readStop?(): void }>(socket);
    if (handle !== null) this.take({ ...facts, handle, until: now() + MAX_WAIT_MS });
  }

  take(connection: HandedConnection): void {
    const late = setTimeout(() => this.#refuse(pending), Math.max(0, connection.until - now())).unref();
    const pending: Pending = { ...connection, late, attempt: Promise.resolve(), isRefused: false };
    this.#waiting.add(pending);
    this.flush();
  }

  /** Sends the connections that wait, if the process serves. */
  flush(): void {
    const channel = this.#channel();
    if (channel === undefined || channel.ended !== undefined) return;
    for (const pending of this.#waiting) {
      if (this.#sending.size >= MAX_SENDING) return;
      this.#waiting.delete(pending);
      void this.#send(channel, pending);
    }
  }

  /** Resolves when no connection waits or is on its way, after `ms` at the latest. */
  async delivered(ms: number): Promise<void> {
    const last = now() + ms;
    while (now() < last && this.#waiting.size + this.#sending.size > 0) await sleep(POLL_MS);
  }

  /**
   * Refuses what waits. Resolves when the connections on their way have arrived, after `LAST_MS` at
   * the latest.
   */
  async close(): Promise<void> {
    for (const pending of this.#waiting) this.#refuse(pending);
    await this.delivered(LAST_MS);
  }

  async #send(channel: IpcChannel, pending: Pending): Promise<void> {
    const { handle, service, head, to, until } = pending;
    this.#sending.add(pending);
    const attempt = channel
      .handOver({ handle, service, head, to, until })
      .catch(() => (channel.ended === undefined ? false : undefined));
    pending.attempt = attempt;
    const isTaken = await attempt;
    this.#sending.delete(pending);
    if (isTaken === true) this.#close(pending);
    else if (isTaken === undefined && !pending.isRefused) this.#waiting.add(pending);
    else this.#refuse(pending);
    this.flush();
  }

  #refuse(pending: Pending): void {
    if (pending.isRefused) return;
    pending.isRefused = true;
    clearTimeout(pending.late);
    this.#waiting.delete(pending);
    refuseConnection(pending.handle, pending.head, pending.attempt);
  }

  #close(pending: Pending): void {
    clearTimeout(pending.late);
    if (!pending.isRefused) closeHandle(pending.handle);
  }
}

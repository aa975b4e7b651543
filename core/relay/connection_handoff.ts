/** Connections on their way to other processes. They wait while a process is being replaced. */
import type { Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { takeHandle } from "../util/patches/node/handles.ts";
import { closeHandle, type HandedConnection, type IpcChannel, now, type SocketHandle } from "./ipc_channel.ts";
import { refuseConnection } from "./unavailable.ts";

/** Milliseconds that a connection waits for its process. */
const MAX_WAIT_MS = 15_000;

/**
 * Maximum number of connections on their way to one process: enough that none waits for the
 * response to the previous one.
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

/** The connections for one process, in the order of their arrival. */
interface Queue {
  readonly waiting: Set<Pending>;
  readonly sending: Set<Pending>;
}

/**
 * Hands connections over. Each one ends in one of three ways: its process takes it; its process
 * ends first and the next one takes it; or its time runs out and the client gets 503. A handle
 * stays open here until the other end confirms that it has it, because Node.js never reports
 * handles that were queued behind one which an ended process had not acknowledged.
 */
export class ConnectionHandoff {
  readonly #channelTo: (number: number) => IpcChannel | undefined;
  readonly #queues = new Map<number, Queue>();

  /** `channelTo` returns the channel to a process while that process serves. */
  constructor(channelTo: (number: number) => IpcChannel | undefined) {
    this.#channelTo = channelTo;
  }

  /** Takes the connection out of a socket of this process. The socket is destroyed. */
  takeFrom(socket: Socket, facts: Pick<HandedConnection, "service" | "head" | "to">): void {
    const handle = takeHandle<SocketHandle & { readStop?(): void }>(socket);
    if (handle !== null) this.take({ ...facts, handle, until: now() + MAX_WAIT_MS });
  }

  take(connection: HandedConnection): void {
    const { to, until } = connection;
    const late = setTimeout(() => this.#refuse(pending), Math.max(0, until - now())).unref();
    const pending: Pending = { ...connection, late, attempt: Promise.resolve(), isRefused: false };
    this.#queueOf(to).waiting.add(pending);
    this.flush(to);
  }

  /** Sends the connections that wait for the process of this number, if it serves. */
  flush(number: number): void {
    const { waiting, sending } = this.#queueOf(number);
    const channel = this.#channelTo(number);
    if (channel === undefined || channel.isEnded) return;
    for (const pending of waiting) {
      if (sending.size >= MAX_SENDING) return;
      waiting.delete(pending);
      void this.#send(channel, pending);
    }
  }

  /** Resolves when no connection waits or is on its way, after `ms` at the latest. */
  async delivered(ms: number): Promise<void> {
    const last = now() + ms;
    const isBusy = ({ waiting, sending }: Queue) => waiting.size + sending.size > 0;
    while (now() < last && this.#queues.values().some(isBusy)) await sleep(POLL_MS);
  }

  /**
   * Refuses what waits. Resolves when the connections on their way have arrived, after `LAST_MS` at
   * the latest.
   */
  async close(): Promise<void> {
    for (const { waiting } of this.#queues.values()) for (const pending of waiting) this.#refuse(pending);
    await this.delivered(LAST_MS);
  }

  async #send(channel: IpcChannel, pending: Pending): Promise<void> {
    const { handle, service, head, to, until } = pending;
    const { waiting, sending } = this.#queueOf(to);
    sending.add(pending);
    const attempt = channel
      .handOver({ handle, service, head, to, until })
      .catch(() => (channel.isEnded ? undefined : false));
    pending.attempt = attempt;
    const isTaken = await attempt;
    sending.delete(pending);
    if (isTaken === true) this.#close(pending);
    else if (isTaken === undefined && !pending.isRefused) waiting.add(pending);
    else this.#refuse(pending);
    this.flush(to);
  }

  #refuse(pending: Pending): void {
    if (pending.isRefused) return;
    pending.isRefused = true;
    clearTimeout(pending.late);
    this.#queueOf(pending.to).waiting.delete(pending);
    refuseConnection(pending.handle, pending.head, pending.attempt);
  }

  #close(pending: Pending): void {
    clearTimeout(pending.late);
    if (!pending.isRefused) closeHandle(pending.handle);
  }

  #queueOf(number: number): Queue {
    let queue = this.#queues.get(number);
    if (queue === undefined) this.#queues.set(number, (queue = { waiting: new Set(), sending: new Set() }));
    return queue;
  }
}

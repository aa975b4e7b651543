/** Calls between two threads or two processes, over any transport that copies values. */
import { deserializeError, serializeError } from "./errors.ts";

/** Maximum number of calls that wait for a response. Further calls are rejected. */
const MAX_PENDING = 1024;

/**
 * Maximum number of values of a call. A hostile end can send a list of billions of empty values,
 * which no function must be called with.
 */
const MAX_VALUES = 64;

/** One end of the transport: a port between threads, or the IPC channel between processes. */
export interface MessageEndpoint {
  postMessage(message: unknown): void;
  /** The message may be anything, because other code can post to the same endpoint. */
  on(event: "message", listener: (message: unknown) => void): unknown;
}

/** The functions that the other end may call. */
export type Handlers = Readonly<Record<string, (...values: never[]) => unknown>>;

/** A call without an id is a notification: nobody waits for its response. */
type Call = { readonly call: string; readonly id: number | undefined; readonly values: readonly unknown[] };
type Reply = { readonly reply: number } & ({ readonly value: unknown } | { readonly error: unknown });

export class Channel {
  readonly #endpoint: MessageEndpoint;
  readonly #readError: (received: unknown) => Error;
  readonly #pending = new Map<number, PromiseWithResolvers<unknown>>();
  #calls = 0;
  #ended: Error | undefined;

  /**
   * `onStray` gets the messages of other code, which the channel ignores. `readError` makes the
   * error of a call that has failed at the other end.
   */
  constructor(
    endpoint: MessageEndpoint,
    handlers: Handlers,
    onStray: (message: unknown) => void = () => undefined,
    readError: (received: unknown) => Error = deserializeError,
  ) {
    this.#endpoint = endpoint;
    this.#readError = readError;
    endpoint.on("message", (message) => {
      const known = readMessage(message);
      if (known === undefined) onStray(message);
      else if ("call" in known) void this.#serve(handlers, known);
      else this.#settle(known);
    });
  }

  /** Why the channel has ended; undefined while the other end can be called. */
  get ended(): Error | undefined {
    return this.#ended;
  }

  /**
   * Calls a handler of the other end, and resolves with what that returns. Rejects with what it
   * throws, when a value cannot be copied, and when the other end has gone.
   */
  call(name: string, ...values: unknown[]): Promise<unknown> {
    if (this.#ended !== undefined) return Promise.reject(this.#ended);
    if (this.#pending.size >= MAX_PENDING)
      return Promise.reject(new Error(`More than ${MAX_PENDING} calls are pending`));
    const id = ++this.#calls;
    const pending = Promise.withResolvers<unknown>();
    this.#pending.set(id, pending);
    try {
      this.#endpoint.postMessage({ call: name, id, values });
    } catch (error) {
      this.#pending.delete(id);
      pending.reject(error);
    }
    return pending.promise;
  }

  /**
   * Calls a handler of the other end without waiting for it. @throws when a value cannot be copied
   */
  notify(name: string, ...values: unknown[]): void {
    if (this.#ended === undefined) this.#endpoint.postMessage({ call: name, id: undefined, values });
  }

  /** Must be called when the other end has gone: rejects every pending call and each later one. */
  end(error: Error): void {
    if (this.#ended !== undefined) return;
    this.#ended = error;
    for (const { reject } of this.#pending.values()) reject(error);
    this.#pending.clear();
  }

  async #serve(handlers: Handlers, { call, id, values }: Call): Promise<void> {
    const reply = (result: object) => {
      if (id !== undefined && this.#ended === undefined) this.#endpoint.postMessage({ reply: id, ...result });
    };
    try {
      const handler = Object.hasOwn(handlers, call) ? handlers[call] : undefined;
      if (handler === undefined) throw new Error(`This end has no function ${call}`);
      reply({ value: await handler(...(values as never[])) });
    } catch (error) {
      reply({ error: serializeError(error) });
    }
  }

  #settle(message: Reply): void {
    const pending = this.#pending.get(message.reply);
    this.#pending.delete(message.reply);
    if ("error" in message) pending?.reject(this.#readError(message.error));
    else pending?.resolve(message.value);
  }
}

/** Returns the message if a channel has sent it, else undefined. */
function readMessage(message: unknown): Call | Reply | undefined {
  const { call, id, values, reply } = (message ?? {}) as Record<string, unknown>;
  const areValues = Array.isArray(values) && values.length <= MAX_VALUES;
  if (typeof call === "string" && areValues && (id === undefined || Number.isSafeInteger(id))) return message as Call;
  return Number.isSafeInteger(reply) ? (message as Reply) : undefined;
}

/**
 * Rejects when the work takes longer than `seconds`, so that a peer that hangs delays nobody for
 * longer.
 */
export async function within<T>(seconds: number, work: Promise<T>, reason: string): Promise<T> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(new Error(reason)), seconds * 1000);
  try {
    return await Promise.race([work, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}

/** Calls between the host and the worker of an isolated module, over a port that copies values. */
import { type ErrorCode, errorTable, ModhostError } from "../util/errors.ts";

/** Calls that may wait for their answers; more are refused. */
const MAX_WAITING = 1024;

/** What the two ends have in common: a `Worker`, and the `parentPort` inside of it. */
export interface Port {
  postMessage(message: unknown): void;
  on(event: "message", listener: (message: Message) => void): unknown;
}

type Message =
  | { readonly call: string; readonly id: number | undefined; readonly values: readonly unknown[] }
  | { readonly answer: number; readonly value: unknown }
  | { readonly answer: number; readonly error: SentError };

/** An error as it crosses. */
export interface SentError {
  readonly name: string;
  readonly message: string;
  readonly stack: string | undefined;
  readonly code: unknown;
}

type Handlers = Readonly<Record<string, (...values: never[]) => unknown>>;

export class Channel {
  readonly #port: Port;
  readonly #waiting = new Map<number, PromiseWithResolvers<unknown>>();
  #calls = 0;
  #ended: Error | undefined;

  constructor(port: Port, handlers: Handlers) {
    this.#port = port;
    port.on("message", (message) => {
      if ("call" in message) void this.#serve(handlers, message);
      else this.#settle(message);
    });
  }

  /** What the other end gives. Rejects when a value cannot be copied, and when the other end is gone. */
  call(name: string, ...values: unknown[]): Promise<unknown> {
    if (this.#ended !== undefined) return Promise.reject(this.#ended);
    if (this.#waiting.size >= MAX_WAITING) return Promise.reject(new Error(`More than ${MAX_WAITING} calls wait`));
    const id = ++this.#calls;
    const waiting = Promise.withResolvers<unknown>();
    this.#waiting.set(id, waiting);
    try {
      this.#port.postMessage({ call: name, id, values });
    } catch (error) {
      this.#waiting.delete(id);
      waiting.reject(error);
    }
    return waiting.promise;
  }

  /** Tells the other end something. @throws what cannot be copied */
  tell(name: string, ...values: unknown[]): void {
    if (this.#ended === undefined) this.#port.postMessage({ call: name, id: undefined, values });
  }

  /** The other end is gone: what waits for it fails. */
  end(error: Error): void {
    this.#ended = error;
    for (const { reject } of this.#waiting.values()) reject(error);
    this.#waiting.clear();
  }

  async #serve(handlers: Handlers, { call, id, values }: Extract<Message, { call: string }>): Promise<void> {
    const answer = (message: object) => {
      if (id !== undefined && this.#ended === undefined) this.#port.postMessage({ answer: id, ...message });
    };
    try {
      const handler = handlers[call];
      if (handler === undefined) throw new Error(`There is no ${call} here`);
      answer({ value: await handler(...(values as never[])) });
    } catch (error) {
      answer({ error: sentError(error) });
    }
  }

  #settle(message: Exclude<Message, { call: string }>): void {
    const waiting = this.#waiting.get(message.answer);
    this.#waiting.delete(message.answer);
    if ("error" in message) waiting?.reject(receivedError(message.error));
    else waiting?.resolve(message.value);
  }
}

export function sentError(thrown: unknown): SentError {
  if (!(thrown instanceof Error)) return { name: "Error", message: String(thrown), stack: undefined, code: undefined };
  const { name, message, stack } = thrown;
  const { code } = thrown as { code?: unknown };
  const isPlain = typeof code === "string" || typeof code === "number";
  return { name, message, stack, code: isPlain ? code : undefined };
}

export function receivedError({ name, message, stack, code }: SentError): Error {
  if (name === "ModhostError" && typeof code === "string" && code in errorTable) {
    return Object.assign(new ModhostError(code as ErrorCode), { message, ...(stack === undefined ? {} : { stack }) });
  }
  const error = new Error(message);
  error.name = name;
  if (stack !== undefined) error.stack = stack;
  return code === undefined ? error : Object.assign(error, { code });
}

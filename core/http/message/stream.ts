import { AsyncResource } from "node:async_hooks";
import type { ServerResponse } from "node:http";
import { Readable } from "node:stream";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { PooledBody } from "../../types.ts";
import type { NodeResponse } from "../../util/node_messages.ts";

/** The part of an exchange that sending a body uses. */
export interface Outlet {
  /** Whether the client has left, or the response is complete. */
  readonly gone: boolean;
  readonly response: { readonly raw: NodeResponse; bytes: number; delivered: boolean };
  /** Requires the client to make progress in reading until `unwatchWriting` is called. */
  watchWriting(): void;
  unwatchWriting(): void;
  /** Resolves when memory for the body is available; undefined when it is available now. */
  enter(): Promise<void> | undefined;
  /** Called when the first piece is written, or when there is none. */
  entered(): void;
}

/**
 * Disposes of a handler's value that is not sent: closes files, ends generators, and ignores their
 * errors.
 */
export function discard(value: unknown): void {
  if (typeof value !== "object" || value === null) return;
  if (value instanceof Readable) value.on("error", () => undefined).destroy();
  else if (value instanceof ReadableStream) value.cancel().catch(() => undefined);
  else if (Symbol.asyncIterator in value) leave((value as AsyncIterable<unknown>)[Symbol.asyncIterator]());
  else if ("body" in value) discard(value.body);
}

/** Ends an iteration early. */
function leave(iterator: AsyncIterator<unknown>): void {
  Promise.try(() => iterator.return?.()).catch(() => undefined);
}

/** Milliseconds after which a body that never waits lets other work run. */
const MAX_TURN_TIME = 10;

/**
 * Sends a body no faster than the client reads: one piece is requested ahead. Ends quietly when the
 * client leaves, and then ends the body. Rejects when the body fails or does not have the announced
 * `length`. `head` is written before the first piece; its `begin` returns false when the body is
 * not wanted.
 */
export async function pump(
  outlet: Outlet,
  source: AsyncIterable<unknown>,
  length: number | undefined,
  head?: { begin(): boolean },
): Promise<void> {
  if (outlet.gone) {
    discard(source);
    return;
  }
  const waiting = outlet.enter();
  if (waiting !== undefined) {
    await waiting;
    if (outlet.gone) {
      discard(source);
      return;
    }
  }
  const { response } = outlet;
  const raw = response.raw as ServerResponse;
  const sent = takerOf(source);
  const iterator = source[Symbol.asyncIterator]();
  const gate = new Gate(outlet);
  let isOver = false;
  // `close` is emitted outside of the module's asynchronous context, but `end` runs the module's
  // generator.
  const context = new AsyncResource("modhost.body");
  const leaveSource = () => {
    if (source instanceof Readable) source.destroy();
    else if (!isOver) leave(iterator);
    isOver = true;
  };
  const end = () => context.runInAsyncScope(leaveSource);
  const wrong = (amount: string) =>
    new Error(`The body has ${amount} than the ${length} bytes that content_length announced`);
  raw.once("close", end);
  let turn = performance.now() + MAX_TURN_TIME;
  try {
    for (let next = await iterator.next(); next.done !== true; next = await iterator.next()) {
      const piece = next.value;
      if (typeof piece !== "string" && !(piece instanceof Uint8Array)) {
        throw new TypeError(`A response stream gave a ${typeof piece}: only strings and bytes can be sent`);
      }
      if (gate.opened !== undefined) await gate.opened;
      if (outlet.gone) {
        sent?.(piece);
        return;
      }
      if (piece.length === 0) continue;
      const bytes = response.bytes + (typeof piece === "string" ? Buffer.byteLength(piece) : piece.length);
      if (length !== undefined && bytes > length) throw wrong("more");
      if (head?.begin() === false) {
        sent?.(piece);
        return;
      }
      response.bytes = bytes;
      const isLast = response.bytes === length;
      const taken = (error?: Error | null) => {
        if (isLast && !error) response.delivered = true;
        sent?.(piece);
      };
      const goesOn = raw.write(piece, isLast || sent !== undefined ? taken : undefined);
      if (!goesOn) gate.shut();
      outlet.entered();
      if (goesOn && performance.now() > turn) {
        await nextTurn();
        turn = performance.now() + MAX_TURN_TIME;
      }
    }
    isOver = true;
    if (length !== undefined && response.bytes < length && !outlet.gone) throw wrong("less");
  } catch (error) {
    if (!outlet.gone) throw error;
  } finally {
    raw.removeListener("close", end);
    gate.remove();
    end();
    outlet.entered();
  }
}

/**
 * Returns a function that releases pieces of a pooled body, so that the body can reuse their
 * memory; undefined for any other body.
 */
function takerOf(source: AsyncIterable<unknown>): ((piece: string | Uint8Array) => void) | undefined {
  if (!("release" in source) || typeof source.release !== "function") return undefined;
  return (piece) => {
    if (typeof piece !== "string") (source as PooledBody).release(piece);
  };
}

/** Backpressure: the gate is shut while the connection's buffer is full. */
class Gate {
  readonly #outlet: Outlet;
  /** Undefined while it is open. */
  opened: Promise<void> | undefined;
  #open: (() => void) | undefined;

  constructor(outlet: Outlet) {
    this.#outlet = outlet;
  }

  shut(): void {
    const { promise, resolve } = Promise.withResolvers<void>();
    const { raw } = this.#outlet.response;
    this.opened = promise;
    // V8 would allocate a function that is assigned to a property at once as if it lived long, and
    // that would retain the exchange until the next full garbage collection.
    const open = () => {
      this.opened = undefined;
      this.remove();
      this.#outlet.unwatchWriting();
      resolve();
    };
    this.#open = open;
    this.#outlet.watchWriting();
    raw.on("drain", open).on("close", open);
  }

  /** The last bytes written may still wait for the client, so the outlet continues to watch it. */
  remove(): void {
    if (this.#open === undefined) return;
    this.#outlet.response.raw.removeListener("drain", this.#open).removeListener("close", this.#open);
    this.#open = undefined;
  }
}

/**
 * Contains callbacks whose errors Node.js reports without a context, or with which it ends the
 * process.
 */
import asyncHooks from "node:async_hooks";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import type { EventEmitter } from "node:events";
import { actingNow, type Usage } from "./usage.ts";

type Failed = (error: unknown) => void;
type Callback = (...values: unknown[]) => unknown;

/**
 * Calls a function on behalf of an owner. If it throws, `failed` is called in the context of that
 * owner, and the result is undefined.
 */
export function callContained(owner: Usage, failed: Failed, call: () => unknown): unknown {
  try {
    return owner.run(call);
  } catch (error) {
    owner.run(failed, error);
    return undefined;
  }
}

/**
 * Disables a hook of `async_hooks` whose callback throws, and passes the error to `failed`: Node.js
 * would end the process at once. The returned function restores `createHook`.
 */
export function guardAsyncHooks(failed: Failed): () => void {
  const { createHook } = asyncHooks;
  asyncHooks.createHook = (callbacks) => {
    const owner = actingNow();
    if (owner === undefined) return createHook(callbacks);
    let isOver = false;
    const contained = (callback: Callback): Callback =>
      function (this: unknown, ...values) {
        // While callbacks run, `disable` has no effect.
        if (isOver) return;
        try {
          Reflect.apply(callback, this, values);
        } catch (error) {
          isOver = true;
          hook.disable();
          // The callback has interrupted other code, so the error is reported later.
          setImmediate(() => owner.run(failed, error));
        }
      };
    const all = Object.entries(callbacks).map(([name, value]: [string, unknown]) => [
      name,
      typeof value === "function" ? contained(value as Callback) : value,
    ]);
    const hook = createHook(Object.fromEntries(all));
    return hook;
  };
  return () => {
    asyncHooks.createHook = createHook;
  };
}

/**
 * Makes the events of a thread or connection run in the current context; Node.js emits them in
 * none. Errors of listeners are reported at once, because Node.js reports them after the context
 * has ended.
 */
export function bindEmitter(emitter: EventEmitter, failed: Failed): void {
  const owner = actingNow();
  if (owner === undefined) return;
  const { emit } = emitter;
  emitter.emit = (...values: Parameters<typeof emit>) =>
    callContained(owner, failed, () => Reflect.apply(emit, emitter, values)) === true;
}

/**
 * Attributes connections that a module's own server accepts to the module, until the returned
 * function is called.
 */
export function bindAccepted(failed: Failed): () => void {
  const accepted = (message: unknown) => bindEmitter((message as { readonly socket: EventEmitter }).socket, failed);
  subscribe("net.server.socket", accepted);
  return () => void unsubscribe("net.server.socket", accepted);
}

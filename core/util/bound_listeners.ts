/**
 * Makes listeners run in the asynchronous context in which they were added, which Node.js does not
 * do by itself.
 */
import { AsyncResource } from "node:async_hooks";
import type { EventEmitter } from "node:events";

type Listener = (...values: unknown[]) => void;
type Methods = Pick<EventEmitter, "on" | "prependListener" | "removeListener">;

/** Marks emitters whose listeners are bound. */
const isBound = Symbol("isBound");

/** The replaced methods of emitters, by prototype: the emitters of one class share them. */
const shared = new WeakMap<object, object>();

/**
 * Makes every listener that is added from now on run in the context in which it was added. So an
 * error that it throws, or that something it starts throws, is attributed to its module. It is for
 * emitters of the host that modules can reach.
 */
export function bindListeners(emitter: EventEmitter): void {
  if (Object.hasOwn(emitter, isBound)) return;
  if (hasOwnMethods(emitter)) {
    Object.assign(emitter, bindingMethods(emitter));
    return;
  }
  const prototype = Object.getPrototypeOf(emitter) as Methods;
  let methods = shared.get(prototype);
  if (methods === undefined) shared.set(prototype, (methods = bindingMethods(prototype)));
  Object.assign(emitter, methods);
}

function hasOwnMethods(emitter: EventEmitter): boolean {
  return (
    Object.hasOwn(emitter, "on") ||
    Object.hasOwn(emitter, "prependListener") ||
    Object.hasOwn(emitter, "removeListener")
  );
}

function bindingMethods({ on, prependListener, removeListener }: Methods): object {
  const adding = (add: Methods["on"], isOnce: boolean) =>
    function (this: EventEmitter, event: string | symbol, listener: Listener) {
      if (typeof listener !== "function") return add.call(this, event, listener);
      // `AsyncLocalStorage.bind` does the same and takes a hundred times as long: it defines
      // properties of the bound function.
      const context = new AsyncResource("modhost.listener");
      const call = (...values: unknown[]) => {
        if (isOnce) removeListener.call(this, event, own);
        context.runInAsyncScope(listener, this, ...values);
      };
      // Node.js compares `listener` when the original function is removed.
      const own = Object.assign(call, { listener });
      return add.call(this, event, own);
    };
  return {
    [isBound]: true,
    on: adding(on, false),
    addListener: adding(on, false),
    once: adding(on, true),
    prependListener: adding(prependListener, false),
    prependOnceListener: adding(prependListener, true),
  };
}

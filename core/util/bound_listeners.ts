/**
 * Makes listeners run in the asynchronous context in which they were added, which Node.js does not
 * do by itself.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import type { EventEmitter } from "node:events";

type Listener = (...values: unknown[]) => void;

const bound = new WeakSet<EventEmitter>();

/**
 * Makes every listener that is added from now on run in the context in which it was added. So an
 * error that it throws, or that something it starts throws, is attributed to its module. It is for
 * emitters of the host that modules can reach.
 */
export function bindListeners(emitter: EventEmitter): void {
  if (bound.has(emitter)) return;
  bound.add(emitter);
  const { on, prependListener, removeListener } = emitter;
  const adding = (add: typeof on, isOnce: boolean) =>
    function (this: EventEmitter, event: string | symbol, listener: Listener) {
      if (typeof listener !== "function") return add.call(emitter, event, listener);
      const call = AsyncLocalStorage.bind((...values: unknown[]) => {
        if (isOnce) removeListener.call(emitter, event, own);
        Reflect.apply(listener, emitter, values);
      });
      // Node.js compares `listener` when the original function is removed.
      const own = Object.assign((...values: unknown[]) => call(...values), { listener });
      return add.call(emitter, event, own);
    };
  Object.assign(emitter, {
    on: adding(on, false),
    addListener: adding(on, false),
    once: adding(on, true),
    prependListener: adding(prependListener, false),
    prependOnceListener: adding(prependListener, true),
  });
}

/** Stores the current span while handlers run. */
import { AsyncLocalStorage } from "node:async_hooks";
import { type Context, type ContextManager, context, ROOT_CONTEXT } from "@opentelemetry/api";
import { registeredStore } from "./patches/opentelemetry/registered_store.ts";

export type ContextStore = AsyncLocalStorage<Context>;

/**
 * Returns the store of the context manager that an SDK has registered, so that the SDK's spans and
 * ours are connected. If there is none, registers our own. `release` unregisters it.
 */
export function contextStore(): { store: ContextStore; release(): void } {
  const found = registeredStore();
  if (found !== undefined) return { store: found, release: () => undefined };
  const store: ContextStore = new AsyncLocalStorage();
  const isOurs = context.setGlobalContextManager(new StoredContexts(store));
  return { store, release: () => isOurs && context.disable() };
}

class StoredContexts implements ContextManager {
  readonly #store: ContextStore;

  constructor(store: ContextStore) {
    this.#store = store;
  }

  active(): Context {
    return this.#store.getStore() ?? ROOT_CONTEXT;
  }

  with<A extends unknown[], F extends (...args: A) => ReturnType<F>>(
    entered: Context,
    run: F,
    self?: ThisParameterType<F>,
    ...args: A
  ): ReturnType<F> {
    return this.#store.run(entered, () => run.apply(self, args));
  }

  bind<T>(bound: Context, target: T): T {
    if (typeof target !== "function") return target;
    const store = this.#store;
    return function (this: unknown, ...args: unknown[]) {
      return store.run(bound, () => target.apply(this, args));
    } as T;
  }

  enable(): this {
    return this;
  }

  disable(): this {
    this.#store.disable();
    return this;
  }
}

/** Where the current span is kept while handlers run. */
import { AsyncLocalStorage } from "node:async_hooks";
import { type Context, type ContextManager, context, ROOT_CONTEXT } from "@opentelemetry/api";

export type ContextStore = AsyncLocalStorage<Context>;

/**
 * The store of the context manager that an SDK has registered, so that the spans of both know each other; where there is
 * none, one of our own is registered. `release` takes it away again.
 */
export function contextStore(): { store: ContextStore; release(): void } {
  const found = registeredStore();
  if (found !== undefined) return { store: found, release: () => undefined };
  const store: ContextStore = new AsyncLocalStorage();
  const isOurs = context.setGlobalContextManager(new StoredContexts(store));
  return { store, release: () => isOurs && context.disable() };
}

/** The usual manager, `AsyncLocalStorageContextManager`, keeps its store to itself, and gives no other way to enter a context. */
function registeredStore(): ContextStore | undefined {
  const api = context as unknown as { _getContextManager?(): { _asyncLocalStorage?: unknown } };
  const store = api._getContextManager?.()._asyncLocalStorage;
  return store instanceof AsyncLocalStorage ? store : undefined;
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

import { AsyncLocalStorage } from "node:async_hooks";
import { type Context, context } from "@opentelemetry/api";

/**
 * Returns the store of the context manager that an SDK has registered; undefined if there is none,
 * or if it has an unknown form. The usual manager, `AsyncLocalStorageContextManager`, has no public
 * access to its store, and no other way to enter a context.
 */
export function registeredStore(): AsyncLocalStorage<Context> | undefined {
  const api = context as unknown as { _getContextManager?(): { _asyncLocalStorage?: unknown } };
  const store = api._getContextManager?.()._asyncLocalStorage;
  return store instanceof AsyncLocalStorage ? store : undefined;
}

/**
 * Logs errors that middleware reports by `ctx.app.emit("error", err, ctx)`, as Koa's own server
 * does.
 */
import type Koa from "koa";
import type { Context } from "koa";
import { readableThrown } from "../../util/errors.ts";
import { stackOf } from "../../util/stack.ts";

type Listener = (error: unknown, context?: Context) => void;

const defaults = new WeakSet<Listener>();

/** Whether `listenForErrors` added the listener. */
export function isDefaultListener(listener: unknown): boolean {
  return defaults.has(listener as Listener);
}

/**
 * Adds a listener for errors where the application has none, as Koa's `callback()` does: the
 * application's own `onerror`, or one that logs. It logs what Koa would print: no errors that are
 * shown to the client, and none of a silent application.
 */
export function listenForErrors(app: Koa, log: (text: string, context: Context | undefined) => void): void {
  if (app.listenerCount("error") > 0) return;
  if (hasOwnHandler(app)) {
    app.on("error", app.onerror);
    return;
  }
  const listener: Listener = (given, context) => {
    const error = readableThrown(given);
    const { status, expose } = (error ?? {}) as { readonly status?: unknown; readonly expose?: unknown };
    if (app.silent !== true && status !== 404 && expose !== true) log(stackOf(error), context);
  };
  defaults.add(listener);
  app.on("error", listener);
}

/** Whether the application or its subclass replaces Koa's `onerror`. Works for any copy of Koa. */
function hasOwnHandler(app: Koa): boolean {
  for (let owner: object | null = app; owner !== null; owner = Object.getPrototypeOf(owner)) {
    if (Object.hasOwn(owner, "onerror")) return !Object.hasOwn(owner, "createContext");
  }
  return false;
}

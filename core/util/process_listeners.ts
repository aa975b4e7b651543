/**
 * Guards the listeners on `process` while a service runs: the host's own listeners stay, and those
 * of a module see only errors of that module.
 */
import { callContained } from "./contained_calls.ts";
import { actingNow, lastFailed, type Usage } from "./usage.ts";

type Listener = (...values: never[]) => unknown;

/** The host's listeners by event. */
export type OwnListeners = Readonly<Record<string, Listener>>;

/**
 * Events on which a module's listener gets only errors of its own module, because most such
 * listeners end the process.
 */
const errorEvents: ReadonlySet<string | symbol> = new Set([
  "uncaughtException",
  "uncaughtExceptionMonitor",
  "unhandledRejection",
  "rejectionHandled",
]);

/**
 * Returns the module whose error an event reports. The host's own listener runs first and has
 * already left an exception's context.
 */
const failedNow = (event: string | symbol) => (event === "uncaughtException" ? lastFailed() : actingNow());

/** Node.js itself listens to these to know which signals have listeners. */
const innerEvents: ReadonlySet<string | symbol> = new Set(["newListener", "removeListener"]);

/** Adds the host's own listeners, and guards them until the function that it returns is called. */
export function guardListeners(own: OwnListeners, failed: (error: unknown) => void): () => void {
  const { on, addListener, once, prependListener, prependOnceListener, off, removeListener, removeAllListeners } =
    process;
  const originals = {
    on,
    addListener,
    once,
    prependListener,
    prependOnceListener,
    off,
    removeListener,
    removeAllListeners,
  };
  const add = on as (this: NodeJS.Process, event: string | symbol, listener: Listener) => NodeJS.Process;
  const prepend = prependListener as typeof add;
  const remove = removeListener as typeof add;
  for (const [event, listener] of Object.entries(own)) add.call(process, event, listener);
  const isOwn = (event: string | symbol, listener: Listener) =>
    typeof event === "string" && Object.hasOwn(own, event) && own[event] === listener;

  const adding = (how: typeof add, isOnce: boolean) =>
    function (this: NodeJS.Process, event: string | symbol, listener: Listener) {
      const owner = actingNow();
      if (typeof listener !== "function" || owner === undefined)
        return isOnce && typeof listener === "function"
          ? how.call(process, event, onlyOnce(event, listener))
          : how.call(process, event, listener);
      const contained = containedBy(owner, listener, failed);
      const call = errorEvents.has(event)
        ? (...values: never[]) => (failedNow(event) === owner ? contained(...values) : undefined)
        : contained;
      // Node.js compares `listener` when the original function is removed.
      const shown = Object.assign(call, { listener });
      return how.call(process, event, isOnce ? Object.assign(onlyOnce(event, shown), { listener }) : shown);
    };
  const onlyOnce = (event: string | symbol, listener: Listener) => {
    const once = Object.assign(
      (...values: never[]) => {
        remove.call(process, event, once);
        return Reflect.apply(listener, process, values);
      },
      { listener },
    );
    return once;
  };
  const removing = function (this: NodeJS.Process, event: string | symbol, listener: Listener) {
    return isOwn(event, listener) ? process : remove.call(process, event, listener);
  };
  const clear = (event: string | symbol) => {
    for (const listener of process.rawListeners(event as string) as Listener[]) removing.call(process, event, listener);
  };
  Object.assign(process, {
    on: adding(add, false),
    addListener: adding(add, false),
    once: adding(add, true),
    prependListener: adding(prepend, false),
    prependOnceListener: adding(prepend, true),
    off: removing,
    removeListener: removing,
    removeAllListeners(event?: string | symbol) {
      const events = event === undefined ? process.eventNames().filter((name) => !innerEvents.has(name)) : [event];
      for (const each of events) clear(each);
      return process;
    },
  });
  const open = [process.stdout, process.stderr].map(keepOpen);
  return () => {
    Object.assign(process, originals);
    for (const restore of open) restore();
    for (const [event, listener] of Object.entries(own)) remove.call(process, event, listener);
  };
}

/**
 * Returns the listener with its errors caught: an error thrown in a listener for errors would end
 * the process.
 */
function containedBy(owner: Usage, listener: Listener, failed: (error: unknown) => void): Listener {
  return (...values) => callContained(owner, failed, () => Reflect.apply(listener, process, values));
}

/** Keeps modules from closing a stream to which the host writes its log. */
function keepOpen(stream: NodeJS.WriteStream): () => void {
  const { end, destroy, destroySoon } = stream as NodeJS.WriteStream & { destroySoon?: () => void };
  const ended = (...values: unknown[]) => {
    const done = values.find((value) => typeof value === "function") as (() => void) | undefined;
    const [chunk, encoding] = values;
    if (typeof chunk === "string" || chunk instanceof Uint8Array)
      stream.write(chunk, typeof encoding === "string" ? (encoding as BufferEncoding) : undefined);
    if (done !== undefined) process.nextTick(done);
    return stream;
  };
  Object.assign(stream, { end: ended, destroy: () => stream, destroySoon: () => undefined });
  return () => void Object.assign(stream, { end, destroy, destroySoon });
}

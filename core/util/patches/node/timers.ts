/** Reports the timers that code sets, because Node.js has no diagnostics channel for them. */
import { syncBuiltinESMExports } from "node:module";
import timers from "node:timers";
import promises from "node:timers/promises";

export interface TimerWatch {
  /** Called before each timer is set; returns whether to call `started` for it. */
  isWanted(repeats: boolean): boolean;
  /** `what` is the kind and the delay, for people. */
  started(what: string, isRunning: () => boolean): void;
}

type Timed = (...values: never[]) => unknown;

/**
 * Returns true until the timer is cleared, or has fired for the last time. Returns false when Node
 * does not show it.
 */
export const isPending = (timer: NodeJS.Timeout): boolean =>
  (timer as unknown as { readonly _destroyed?: boolean })._destroyed === false;

/**
 * Replaces the functions that set timers, the global ones and those of `node:timers`, for the rest
 * of the process.
 */
export function watchTimers({ isWanted, started }: TimerWatch): void {
  const watched = (name: "setTimeout" | "setInterval") => {
    const what = name === "setInterval" ? "an interval" : "a timeout";
    const original = globalThis[name] as (...values: unknown[]) => NodeJS.Timeout;
    const replaced = (...values: unknown[]) => {
      const timer = original(...values);
      if (isWanted(name === "setInterval")) started(`${what} of ${values[1] ?? 1} ms`, () => isPending(timer));
      return timer;
    };
    replace([globalThis, timers], name, replaced as Timed);
  };
  watched("setTimeout");
  watched("setInterval");
  const sleep = promises.setTimeout;
  replace([promises], "setTimeout", ((...values: Parameters<typeof sleep>) => {
    const slept = sleep(...values);
    if (!isWanted(false)) return slept;
    let isOver = false;
    const over = () => (isOver = true);
    slept.then(over, over);
    started(`a timeout of ${values[0] ?? 1} ms`, () => !isOver);
    return slept;
  }) as Timed);
  const ticks = promises.setInterval;
  replace([promises], "setInterval", ((...values: Parameters<typeof ticks>) => {
    if (!isWanted(true)) return ticks(...values);
    let isRunning = false;
    started(`an interval of ${values[0] ?? 1} ms`, () => isRunning);
    return (async function* () {
      isRunning = true;
      try {
        yield* ticks(...values);
      } finally {
        isRunning = false;
      }
    })();
  }) as Timed);
  syncBuiltinESMExports();
}

function replace(owners: readonly object[], name: string, replaced: Timed): void {
  const original = Reflect.get(owners[0] as object, name);
  // The properties include the name, and the form that `util.promisify` uses.
  Object.defineProperties(replaced, Object.getOwnPropertyDescriptors(original));
  for (const owner of owners) Reflect.set(owner, name, replaced);
}

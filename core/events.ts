/**
 * Handles one event; handlers and the code that fires the event agree on the fields of the data.
 */
export type EventHandler = (data: never) => unknown;

/** Called with the error of a hook that threw or rejected. */
export type HookFailed = (error: unknown, event: string) => void;

/** The host name that stands for the whole server. */
const everyHost = "*";

interface Hook {
  readonly handler: (data: unknown) => unknown;
  readonly priority: number;
  readonly host: string;
  /** The module that added the hook. */
  readonly owner: string | undefined;
}

/**
 * Named hooks with priorities. `fire` runs them one after another, higher priority first and equal
 * ones in the order they were added, until one returns something other than undefined or null,
 * which is the result. A hook belongs to a host name. It receives events of its own host and of the
 * whole server; a hook of the whole server receives all events.
 */
export class EventBus {
  #hooks = new Map<string, readonly Hook[]>();

  /**
   * Adds a hook; the returned function removes it. A `fire` that is running finishes with its old
   * list.
   */
  add(event: string, handler: EventHandler, priority = 0, host: string = everyHost, owner?: string): () => void {
    const hook: Hook = { handler: handler as (data: unknown) => unknown, priority, host, owner };
    const list = this.#hooks.get(event) ?? [];
    const at = list.findIndex((other) => other.priority < priority);
    this.#hooks.set(event, at < 0 ? [...list, hook] : [...list.slice(0, at), hook, ...list.slice(at)]);
    return () => {
      const rest = (this.#hooks.get(event) ?? []).filter((other) => other !== hook);
      if (rest.length === 0) this.#hooks.delete(event);
      else this.#hooks.set(event, rest);
    };
  }

  /** Returns one line for each hook of a module. */
  ownedBy(owner: string): string[] {
    return [...this.#hooks].flatMap(([event, hooks]) =>
      hooks.filter((hook) => hook.owner === owner).map(() => `hook ${event}`),
    );
  }

  /** Returns true if a hook exists for the event, so that hot paths can skip building its data. */
  has(event: string): boolean {
    return this.#hooks.has(event);
  }

  /**
   * Returns the first result. If a hook returns a promise, returns a promise of the first value
   * other than undefined or null.
   */
  fire(event: string, data: unknown, host: string = everyHost): unknown {
    const list = this.#hooks.get(event);
    return list === undefined ? undefined : this.#fireFrom(list, 0, data, host);
  }

  #fireFrom(list: readonly Hook[], from: number, data: unknown, host: string): unknown {
    for (let at = from; at < list.length; at += 1) {
      const hook = list[at] as Hook;
      if (!isFor(hook, host)) continue;
      const result = hook.handler(data);
      if (result instanceof Promise) return result.then((value) => value ?? this.#fireFrom(list, at + 1, data, host));
      if (result !== undefined && result !== null) return result;
    }
    return undefined;
  }

  /** Runs every hook and ignores the results; `failed` is called for hooks that throw or reject. */
  announce(event: string, data: unknown, failed: HookFailed, host: string = everyHost): void {
    const list = this.#hooks.get(event);
    if (list === undefined) return;
    for (const hook of list) {
      if (!isFor(hook, host)) continue;
      try {
        const result = hook.handler(data);
        if (result instanceof Promise) result.catch((error: unknown) => failed(error, event));
      } catch (error) {
        failed(error, event);
      }
    }
  }
}

function isFor(hook: Hook, host: string): boolean {
  return hook.host === everyHost || host === everyHost || hook.host === host;
}

/** A value given to the handlers of one event; handlers and firers agree on its fields. */
export type EventHandler = (data: never) => unknown;

/** Hears of a hook that threw or rejected. */
export type HookFailed = (error: unknown, event: string) => void;

/** The host name that stands for the whole server. */
const everyHost = "*";

interface Hook {
  readonly handler: (data: unknown) => unknown;
  readonly priority: number;
  readonly host: string;
  /** The module that added it. */
  readonly owner: string | undefined;
}

/**
 * Named hooks with priorities. `fire` runs them one after another, higher priority first, equal ones in the order
 * they were added, until one returns something other than undefined or null: that is the result ("first answer wins").
 *
 * A hook belongs to a host name. It hears what is fired for its own host and for the whole server; a hook of the
 * whole server hears everything.
 */
export class EventBus {
  #hooks = new Map<string, readonly Hook[]>();

  /** Adds a hook; the returned function takes it away again. A running `fire` still finishes its old list. */
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

  /** One line for each hook of a module. */
  ownedBy(owner: string): string[] {
    return [...this.#hooks].flatMap(([event, hooks]) =>
      hooks.filter((hook) => hook.owner === owner).map(() => `hook ${event}`),
    );
  }

  /** True when at least one hook waits for the event: lets hot paths skip building its data. */
  has(event: string): boolean {
    return this.#hooks.has(event);
  }

  /** The first answer; where a hook answers with a promise, a promise of the first value that is one. */
  fire(event: string, data: unknown, host: string = everyHost): unknown {
    const list = this.#hooks.get(event);
    return list === undefined ? undefined : this.#ask(list, 0, data, host);
  }

  #ask(list: readonly Hook[], from: number, data: unknown, host: string): unknown {
    for (let at = from; at < list.length; at += 1) {
      const hook = list[at] as Hook;
      if (!hears(hook, host)) continue;
      const answer = hook.handler(data);
      if (answer instanceof Promise) return answer.then((value) => value ?? this.#ask(list, at + 1, data, host));
      if (answer !== undefined && answer !== null) return answer;
    }
    return undefined;
  }

  /** Tells every hook, whatever the others answer; `failed` hears of those that throw or reject. */
  announce(event: string, data: unknown, failed: HookFailed, host: string = everyHost): void {
    const list = this.#hooks.get(event);
    if (list === undefined) return;
    for (const hook of list) {
      if (!hears(hook, host)) continue;
      try {
        const answer = hook.handler(data);
        if (answer instanceof Promise) answer.catch((error: unknown) => failed(error, event));
      } catch (error) {
        failed(error, event);
      }
    }
  }
}

function hears(hook: Hook, host: string): boolean {
  return hook.host === everyHost || host === everyHost || hook.host === host;
}

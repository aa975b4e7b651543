/**
 * The environment of an isolated module in its worker: the same module object, as far as its calls
 * can cross a thread.
 */
import { Config } from "../config/index.ts";
import { EventBus, type HookFailed } from "../events.ts";
import { Items } from "../module/items.ts";
import type { Release } from "../module/ledger.ts";
import type { ModuleContext } from "../module/module_context.ts";
import { SharedTables } from "../module/shared.ts";
import { Timers } from "../module/timers.ts";
import type { Channel } from "../relay/channel.ts";
import type { HttpProvider, OwnedItem, TokenScopeItem } from "../types.ts";
import { ModhostError } from "../util/errors.ts";
import type { Log } from "../util/log.ts";
import { mirrorOf, type Shape } from "./exports.ts";
import type { WorkerHttp } from "./http.ts";
import type { WorkerTask } from "./messages.ts";

/** Events whose data are requests, or whose hooks return a result. */
const INNER_EVENTS: ReadonlySet<string> = new Set(["http-error", "http-finished", "directory-index"]);

/** The kind of the items that `module.provides("token-scope", ...)` adds. */
export const SCOPES = "token-scope-provider";

export const refuse = (what: string, remedy: string) => new ModhostError("ISOLATED", { what, remedy });

/** The events of the server. Events of this module go through the host as well. */
class WorkerBus extends EventBus {
  readonly #notify: Channel["notify"];

  constructor(notify: Channel["notify"]) {
    super();
    this.#notify = notify;
  }

  override fire(event: string): unknown {
    throw refuse(`fire ${event}, which waits for an answer`, "announce it with module.announce_event");
  }

  override announce(event: string, data: unknown, _failed: HookFailed, host?: string): void {
    this.#notify("announce", event, data, host);
  }

  /** Runs the hooks of this module for an event of the host. */
  deliver(event: string, data: unknown, failed: HookFailed): void {
    super.announce(event, data, failed);
  }
}

/** The items that can cross a thread. */
class WorkerItems extends Items {
  readonly #http: WorkerHttp;
  readonly #addScopes: (item: OwnedItem<TokenScopeItem>) => Release;

  constructor(http: WorkerHttp, addScopes: (item: OwnedItem<TokenScopeItem>) => Release) {
    super();
    this.#http = http;
    this.#addScopes = addScopes;
  }

  override add(kind: string, item: OwnedItem): Release {
    if (kind === "http-provider") return this.#http.add(item as OwnedItem<HttpProvider>);
    return kind === SCOPES ? this.#addScopes(item as OwnedItem<TokenScopeItem>) : super.add(kind, item);
  }

  override isReceived(): boolean {
    return true;
  }
}

class WorkerTables extends SharedTables {
  override use(): never {
    throw refuse(
      "share tables",
      "give others functions: what the module's function returns can be called across threads",
    );
  }
}

function noTokens(): never {
  throw refuse("check tokens", 'ask for them where apps are provided: auth: "token"');
}

export interface WorkerEnvironment {
  readonly context: ModuleContext;
  readonly bus: WorkerBus;
}

interface WorkerDeps {
  readonly channel: Channel;
  readonly log: Log;
  readonly http: WorkerHttp;
  /** Called with each event that the module hooks. */
  hooked(event: string): void;
  /** Called with the token scopes that the module declares, once it is loaded. */
  addScopes(item: OwnedItem<TokenScopeItem>): Release;
}

export function environmentFor(
  task: WorkerTask,
  { channel, log, http, hooked, addScopes }: WorkerDeps,
): WorkerEnvironment {
  const config = new Config(task.config);
  for (const [owner, declarations] of Object.entries(task.declarations)) config.declare(declarations, owner);
  const bus = new WorkerBus((name, ...values) => channel.notify(name, ...values));
  const found = new Map<string, unknown>();
  const given = (name: string, shape: Shape) => {
    if (!found.has(name))
      found.set(
        name,
        mirrorOf(shape, (path, values) => channel.call("depend", name, path, values)),
      );
    return found.get(name);
  };
  const context: ModuleContext = {
    bus,
    items: new WorkerItems(http, addScopes),
    shared: new WorkerTables(),
    timers: new Timers(),
    log,
    config,
    loadTimeout: task.loadTimeout,
    find(name) {
      // It is the host that serves, and the worker has no more of it than a place for routes.
      if (name === "http") {
        http.isUsed = true;
        return { key: "http@*", exports: {} };
      }
      const shape = task.depends[name];
      if (shape !== undefined) return { key: `${name}@*`, exports: given(name, shape) };
      throw refuse(`depend on ${name}`, `name it where the module is declared: export const depends = ["${name}"]`);
    },
    listening: () => task.listening,
    states: () => task.states,
    awaits: () => task.states.some((state) => state.is_late === true),
    tls: () => {
      throw refuse("have the certificates", "serve TLS in a module that is not isolated");
    },
    serves: task.serves,
    admit(what, name) {
      if (what === "receiver") throw refuse(`handle items of kind ${name}`, "they live in other threads");
      if (what === "hook" && INNER_EVENTS.has(name))
        throw refuse(`hook ${name}`, "hook it in a module that is not isolated");
      if (what === "hook") hooked(name);
      if (what === "hook" || name === "http-provider" || name === SCOPES) return;
      const act = name.endsWith("-provider") ? `provide ${name.slice(0, -9)}` : `add items of kind ${name}`;
      throw refuse(act, "only apps of HTTP and token scopes with fixed names can be provided from a worker");
    },
    failed: () => undefined,
    tokens: { identify: noTokens, authorize: noTokens, lacks: noTokens },
    server: () => {
      throw refuse("operate the server", "do so in a module that is not isolated");
    },
  };
  return { context, bus };
}

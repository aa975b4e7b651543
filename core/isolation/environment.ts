/**
 * The environment of a module in its worker or sandbox: the same module object. Calls that cannot
 * reach the host are refused.
 */
import { Config } from "../config/index.ts";
import { EventBus, type HookFailed } from "../events.ts";
import type { Items } from "../module/items.ts";
import type { ModuleContext } from "../module/module_context.ts";
import { SharedTables } from "../module/shared.ts";
import { Timers } from "../module/timers.ts";
import { DATA, denied, type Permission } from "../permissions/index.ts";
import type { Channel } from "../relay/channel.ts";
import { serializeError } from "../relay/errors.ts";
import { mirrorOf } from "./exports.ts";
import type { WorkerHttp } from "./http.ts";
import type { WorkerTask } from "./messages.ts";
import { eventRemedy, hookRemedy, isNamedFor, isNeeded, mayAnnounce, mayHook } from "./rules.ts";
import { type Refuse, type RunnerKind, refusalIn } from "./runner_kind.ts";

/** Events whose data are requests, or whose hooks return a result. */
const INNER_EVENTS: ReadonlySet<string> = new Set(["http-error", "http-finished", "directory-index"]);

/** The kind of the items that `module.provides("token-scope", ...)` adds. */
export const SCOPES = "token-scope-provider";

/** The events of the server. Events of this module go through the host as well. */
class WorkerBus extends EventBus {
  readonly #channel: Channel;
  readonly #deps: WorkerDeps;
  readonly #refuse: Refuse;

  constructor(deps: WorkerDeps) {
    super();
    this.#deps = deps;
    this.#channel = deps.channel;
    this.#refuse = refusalIn(deps.kind);
  }

  override fire(event: string): unknown {
    throw this.#refuse(`fire ${event}, which waits for a result`, "announce it with module.announce_event");
  }

  override announce(event: string, data: unknown, _failed: HookFailed, host?: string): void {
    const { kind, name } = this.#deps;
    if (kind === "sandbox" && !mayAnnounce(name, event)) {
      throw this.#refuse(`announce the event ${event}`, eventRemedy(name));
    }
    this.#channel.notify("announce", event, data, host);
  }

  /** Runs the hooks of this module for an event of the host. */
  deliver(event: string, data: unknown): void {
    super.announce(event, data, (error) => {
      this.#channel.notify("fault", `running a hook of ${event}`, serializeError(error));
    });
  }
}

class WorkerTables extends SharedTables {
  readonly #refuse: Refuse;

  constructor(refuse: Refuse) {
    super();
    this.#refuse = refuse;
  }

  override use(): never {
    throw this.#refuse(
      "share tables",
      "give others functions: modules that depend on it can call what the module's function returns",
    );
  }
}

interface WorkerDeps {
  /** The name of the module. */
  readonly name: string;
  readonly kind: RunnerKind;
  readonly channel: Channel;
  readonly log: ModuleContext["log"];
  readonly items: Items;
  readonly http: WorkerHttp;
  /** Called with each event that the module hooks. */
  hooked(event: string): void;
}

/** Returns the context of the instance; its bus delivers the events of the host. */
export function environmentFor(task: WorkerTask, deps: WorkerDeps): ModuleContext & { readonly bus: WorkerBus } {
  const { name: own, kind, channel, log, items, http, hooked } = deps;
  const refuse = refusalIn(kind);
  const noTokens = () => {
    throw refuse("check tokens", 'require them where apps are provided: auth: "token"');
  };
  const config = new Config(task.config);
  for (const [owner, declarations] of Object.entries(task.declarations)) config.declare(declarations, owner);
  const mirrors = new Map(
    Object.entries(task.depends).map(([name, shape]) => [
      name,
      mirrorOf(shape, (path, values) => channel.call("depend", name, path, values)),
    ]),
  );
  const { restriction } = task;
  const reported = new Set<string>();
  /** Refuses an option of others that is not granted. The first read of each is reported. */
  const readOption = (option: string) => {
    if (restriction === undefined) return;
    const isData = option === "data_path";
    if (!isData && (isNamedFor(own, option) || isNeeded(option))) return;
    const permission: Permission = isData ? { kind: "write", item: DATA } : { kind: "options", item: option };
    const isGranted = isData ? restriction.hasData : restriction.options.includes(option);
    if (!reported.has(option)) {
      if (!isData) channel.notify("read", option);
      else if (!isGranted) channel.notify("permission", permission.kind, permission.item);
    }
    reported.add(option);
    if (!isGranted && !restriction.isAudited) throw denied(own, permission);
  };
  return {
    bus: new WorkerBus(deps),
    items,
    shared: new WorkerTables(refuse),
    timers: new Timers(),
    log,
    config,
    loadTimeout: task.loadTimeout,
    find(name) {
      // The host serves HTTP. The module here has no exports, and only takes routes.
      if (name === "http") {
        http.isUsed = true;
        return { key: "http@*", exports: {} };
      }
      if (mirrors.has(name)) return { key: `${name}@*`, exports: mirrors.get(name) };
      throw refuse(`depend on ${name}`, `name it where the module is declared: export const depends = ["${name}"]`);
    },
    listening: () => task.listening,
    states: () => task.states,
    awaits: () => task.states.some((state) => state.is_late === true),
    tls: () => {
      throw refuse("use the certificates", "serve TLS in a trusted module");
    },
    serves: task.serves,
    admit(what, name) {
      if (what === "option") {
        readOption(name);
        return;
      }
      if (what === "receiver") throw refuse(`handle items of kind ${name}`, `they are outside of its ${kind}`);
      if (what === "hook" && INNER_EVENTS.has(name)) throw refuse(`hook ${name}`, "hook it in a trusted module");
      if (what === "hook" && kind === "sandbox" && !mayHook(own, Object.keys(task.depends), name))
        throw refuse(`hook ${name}`, hookRemedy(own));
      if (what === "hook") hooked(name);
      if (what === "hook" || name === "http-provider" || name === SCOPES) return;
      const act = name.endsWith("-provider") ? `provide ${name.slice(0, -9)}` : `add items of kind ${name}`;
      throw refuse(act, `only apps of HTTP and token scopes with fixed names can be provided from a ${kind}`);
    },
    failed: (_owner, step, error) => channel.notify("fault", step, serializeError(error)),
    tokens: { identify: noTokens, authorize: noTokens, lacks: noTokens },
    server: () => {
      throw refuse("operate the server", "do so in a trusted module");
    },
  };
}

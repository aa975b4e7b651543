/**
 * The program of a worker: runs one instance of an isolated module, and serves the calls of the
 * host.
 */
import { syncBuiltinESMExports } from "node:module";
import { parentPort, workerData } from "node:worker_threads";
import { type ModuleCode, readCode } from "../module/code.ts";
import { Deadline } from "../module/deadline.ts";
import { installHooks } from "../module/fresh_import.ts";
import { Instance } from "../module/instance.ts";
import { Items } from "../module/items.ts";
import { Channel, type MessageEndpoint } from "../relay/channel.ts";
import { serializeError } from "../relay/errors.ts";
import { ScopeKinds } from "../tokens/index.ts";
import type { HttpProvider, NamedTokenScopes, OwnedItem, TokenScopeItem } from "../types.ts";
import { isOwnProcess } from "../util/own_process.ts";
import { guardListeners } from "../util/process_listeners.ts";
import { keepTickShape } from "../util/tick_shape.ts";
import { leaveFailed } from "../util/usage.ts";
import { environmentFor, refuse, SCOPES } from "./environment.ts";
import { callAt, shapeOf } from "./exports.ts";
import { WorkerHttp } from "./http.ts";
import { logTo } from "./log.ts";
import {
  appSettings,
  type Described,
  type Loaded,
  type ProvidedApp,
  type Serving,
  type WorkerCode,
  type WorkerTask,
} from "./messages.ts";
import { gatherOutput } from "./output.ts";
import { reportPermissions } from "./permission_audit.ts";

/** Exit code of a worker whose code calls `process.abort` or kills its own process. */
const ABORTED = 134;
const { source, loadTimeout, port, bell, isRung } = workerData as WorkerCode;
// The module's code must not reach the ports.
for (const name of ["port", "bell", "isRung"]) delete (workerData as Record<string, unknown>)[name];
installHooks();
keepTickShape();
endsAlone();
quietParent();
gatherOutput(process.stdout, process.stderr);

const post = port.postMessage.bind(port);
const ring = bell.postMessage.bind(bell);
const toHost: MessageEndpoint = {
  postMessage(message) {
    post(message);
    if (Atomics.exchange(isRung, 0, 1) === 0) ring(null);
  },
  on: port.on.bind(port),
};
/** Functions that the host may call; `load` adds those of the instance. */
const handlers: Record<string, (...values: never[]) => unknown> = {
  ping: () => process.memoryUsage().external,
  describe,
  load,
};
const channel: Channel = new Channel(toHost, handlers);
const log = logTo((lines) => channel.call("log", lines));
/** Apps and token scopes that the result of `load` contains. */
const known = new WeakSet<OwnedItem>();
const kinds = new ScopeKinds();
const http = new WorkerHttp(log, kinds);
/** Receives the kinds of items that the host can use from another thread. */
const items = new Items();
const fault = (error: unknown) => channel.notify("fault", "removing what it provides", serializeError(error));
items.handle("http-provider", {
  added: (item) => addApp(item as OwnedItem<HttpProvider>),
  removed: (item) => http.remove(item as OwnedItem<HttpProvider>),
  fault,
});
items.handle(SCOPES, {
  added: (item) => addScopes(item as OwnedItem<TokenScopeItem>),
  removed: (item) => kinds.remove(item as OwnedItem<TokenScopeItem>),
  fault,
});
let code: ModuleCode | undefined;
let made: Instance | undefined;
const stray = (error: unknown) => made?.fault("running code that is not awaited", error);
const uncaught = (error: unknown) => {
  if (made?.uncaught(error) !== true) stray(error);
};
const uncaughtException = (error: unknown) => {
  uncaught(error);
  leaveFailed();
};
guardListeners({ unhandledRejection: stray, uncaughtException }, uncaught);

/** Makes `process.abort` and `process.kill` end this worker instead of the whole process. */
function endsAlone(): void {
  const { kill } = process;
  process.abort = () => process.exit(ABORTED);
  process.kill = (pid, signal) => (isOwnProcess(pid) && signal !== 0 ? process.exit(ABORTED) : kill(pid, signal));
  syncBuiltinESMExports();
}

/**
 * Drops messages that the module posts to the parent thread. The first one notifies the host.
 */
function quietParent(): void {
  const post = parentPort?.postMessage.bind(parentPort);
  let isReported = false;
  Object.defineProperty(parentPort, "postMessage", {
    value: () => {
      if (!isReported) post?.(null);
      isReported = true;
    },
    writable: true,
    configurable: true,
  });
}

async function describe(): Promise<Described> {
  const files = new Set<string>();
  code = await readCode(source, loadTimeout, files);
  const { options, depends, global, shared = false, sticky, permissions, hints } = code;
  return { options, depends, global, shared, sticky, permissions, hints, files: [...files] };
}

async function load(task: WorkerTask): Promise<Loaded> {
  code ??= await readCode(source, loadTimeout);
  const events = new Set<string>();
  const hooked = (event: string) => {
    if (events.has(event)) return;
    events.add(event);
    if (made?.phase === "loaded") channel.notify("listen", event);
  };
  if (task.restriction?.isAudited === true) reportPermissions((kind, item) => channel.notify("audited", kind, item));
  const context = environmentFor(task, { name: source.name, channel, log, items, http, hooked });
  const own = new Instance(code, task.host, context, { reloading: task.reloading });
  made = own;
  const { module } = own;
  Object.assign(handlers, {
    serve: (serving: Serving) => http.serve(serving, appsOf(own)),
    commit: () => own.commit(),
    ready: () => own.ready(),
    save: () => module.save?.(),
    restore: (saved: unknown) => module.restore?.(saved),
    leave: (closeCode: number) => Promise.all([http.leave(closeCode), ...own.withdraw()]).then(() => undefined),
    unload: (seconds: number) => own.close(new Deadline(seconds)),
    call: (path: readonly string[], values: readonly unknown[]) => callAt(own.exports, path, values),
    event: (event: string, data: unknown) => context.bus.deliver(event, data),
  });
  const setStatus = module.set_status.bind(module);
  let isNoting = false;
  const note = () => {
    isNoting = false;
    channel.notify("note", own.note);
  };
  Object.defineProperty(module, "set_status", {
    value: (...status: Parameters<typeof setStatus>) => {
      setStatus(...status);
      // Only the last of several changes in one tick is sent to the host.
      if (!isNoting) queueMicrotask(note);
      isNoting = true;
    },
  });
  await own.run(() => task.hosts);
  const fields = ["save", "restore"] as const;
  const apps = appsOf(own);
  const scopes = own.itemsOf(SCOPES) as OwnedItem<TokenScopeItem>[];
  for (const item of [...apps, ...scopes]) known.add(item);
  return {
    exports: shapeOf(own.exports),
    global: own.host === "*",
    serves: http.isUsed || apps.length > 0,
    apps: apps.map(appOf),
    scopes: scopes.map(namedScopes),
    events: [...events],
    has: fields.filter((name) => module[name] !== undefined),
  };
}

function appsOf(own: Instance): OwnedItem<HttpProvider>[] {
  return own.itemsOf("http-provider") as OwnedItem<HttpProvider>[];
}

/** Adds an app, and reports it to the host if the module provides it after it is loaded. */
function addApp(item: OwnedItem<HttpProvider>): void {
  http.add(item);
  if (!known.has(item)) channel.notify("provide", appOf(item));
}

/**
 * Declares token scopes for `request.token.allows` in this thread. The host makes its own
 * declaration from the result of `load`.
 */
function addScopes(item: OwnedItem<TokenScopeItem>): void {
  if (!known.has(item)) {
    throw refuse("declare token scopes after it is loaded", "declare them in the module's function");
  }
  kinds.add(item);
}

function namedScopes({ item }: OwnedItem<TokenScopeItem>): NamedTokenScopes {
  if ("parse" in item) {
    const remedy = "give them fixed names: { kind, help, accesses }";
    throw refuse("declare token scopes with functions, which other threads cannot call", remedy);
  }
  const { kind, help, accesses } = item;
  return { kind, help, ...(accesses && { accesses }) };
}

function appOf({ item, owner }: OwnedItem<HttpProvider>): ProvidedApp {
  const { route, middleware } = item;
  const settings = appSettings.flatMap((field) => (item[field] === undefined ? [] : [[field, item[field]]]));
  return {
    host: owner.host,
    keys: route && Object.entries(route).flatMap(([key, value]) => (value === undefined ? [] : [key])),
    hasMiddleware: middleware !== undefined,
    settings: Object.fromEntries(settings),
  };
}

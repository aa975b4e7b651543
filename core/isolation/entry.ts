/** The program of a worker: runs one instance of an isolated module, and does what the host asks of it. */
import { syncBuiltinESMExports } from "node:module";
import { parentPort, workerData } from "node:worker_threads";
import { type ModuleCode, readCode } from "../module/code.ts";
import { Deadline } from "../module/deadline.ts";
import { installHooks } from "../module/fresh_import.ts";
import { Instance } from "../module/instance.ts";
import type { HttpProvider, OwnedItem } from "../types.ts";
import { keepTickShape } from "../util/tick_shape.ts";
import { Channel, type Port, sentError } from "./channel.ts";
import { environmentFor } from "./environment.ts";
import { callAt, shapeOf } from "./exports.ts";
import { WorkerHttp } from "./http.ts";
import { logTo } from "./log.ts";
import type { Described, Loaded, ProvidedApp, Serving, WorkerCode, WorkerTask } from "./messages.ts";

/** Exit code of a worker that wanted to abort or to kill the process: as after SIGABRT. */
const ABORTED = 134;
const { source, loadTimeout } = workerData as WorkerCode;
installHooks();
keepTickShape();
endsAlone();

const channel: Channel = new Channel(parentPort as unknown as Port, {
  ping: () => process.memoryUsage().external,
  describe,
  load,
  serve: (serving: Serving) => http.serve(serving, appsOf(instance())),
  commit: () => instance().commit(),
  ready: () => instance().ready(),
  save: () => instance().module.save?.(),
  restore: (saved: unknown) => instance().module.restore?.(saved),
  async leave(closeCode: number) {
    const left = http.leave(closeCode);
    await Promise.all([left, ...instance().withdraw()]);
  },
  unload: (seconds: number) => instance().close(new Deadline(seconds)),
  call: (path: readonly string[], values: readonly unknown[]) => callAt(instance().exports, path, values),
  hear: (event: string, data: unknown) => hear(event, data),
});
const log = logTo((lines) => channel.call("log", lines));
/** Apps that the host knows of from what `load` gave. */
const told = new WeakSet<OwnedItem>();
const http = new WorkerHttp(log, (item) => {
  if (!told.has(item)) channel.tell("provide", appOf(item));
});
let code: ModuleCode | undefined;
let made: Instance | undefined;
let hear: (event: string, data: unknown) => void = () => undefined;
const stray = (error: unknown) => {
  if (made !== undefined) made.fault("doing what nobody waits for", error);
};
process.on("unhandledRejection", stray);
process.on("uncaughtException", stray);

/** What ends the process of the host elsewhere ends this worker. */
function endsAlone(): void {
  const { kill } = process;
  process.abort = () => process.exit(ABORTED);
  process.kill = (pid, signal) => (pid === process.pid && signal !== 0 ? process.exit(ABORTED) : kill(pid, signal));
  syncBuiltinESMExports();
}

function instance(): Instance {
  return made as Instance;
}

function fault(step: string, error: unknown): void {
  channel.tell("fault", step, sentError(error));
}

async function describe(): Promise<Described> {
  const files = new Set<string>();
  code = await readCode(source, loadTimeout, files);
  const { options, depends, global, shared, sticky, hints } = code;
  const place = { ...(shared === true ? { shared } : {}), ...(sticky === undefined ? {} : { sticky }) };
  return { options, depends, global, hints, files: [...files], ...place };
}

async function load(task: WorkerTask): Promise<Loaded> {
  code ??= await readCode(source, loadTimeout);
  const events = new Set<string>();
  const hooked = (event: string) => {
    if (events.has(event)) return;
    events.add(event);
    if (made?.phase === "loaded") channel.tell("listen", event);
  };
  const { context, bus } = environmentFor(task, { channel, log, http, hooked });
  hear = (event, data) => bus.hear(event, data, (error) => fault(`running a hook of ${event}`, error));
  const failed = (_owner: unknown, step: string, error: unknown) => fault(step, error);
  const own = new Instance(code, task.host, { ...context, failed }, { reloading: task.reloading });
  made = own;
  const { module } = own;
  const setStatus = module.set_status.bind(module);
  Object.defineProperty(module, "set_status", {
    value: (...status: Parameters<typeof setStatus>) => {
      setStatus(...status);
      channel.tell("note", own.note);
    },
  });
  await own.run(() => task.hosts);
  const fields = ["save", "restore"] as const;
  const apps = appsOf(own);
  for (const app of apps) told.add(app);
  return {
    exports: shapeOf(own.exports),
    global: own.host === "*",
    serves: http.isAsked || apps.length > 0,
    apps: apps.map(appOf),
    events: [...events],
    has: fields.filter((name) => module[name] !== undefined),
  };
}

function appsOf(own: Instance): OwnedItem<HttpProvider>[] {
  return own.itemsOf("http-provider") as OwnedItem<HttpProvider>[];
}

function appOf({ item, owner }: OwnedItem<HttpProvider>): ProvidedApp {
  const { route, middleware, name, default_path, priority, auth, cors, default_headers, websocket, upload_pause } =
    item;
  const place = Object.entries({ name, default_path, priority, auth, cors, default_headers, websocket, upload_pause });
  return {
    host: owner.host,
    keys: route && Object.entries(route).flatMap(([key, value]) => (value === undefined ? [] : [key])),
    hasMiddleware: middleware !== undefined,
    place: Object.fromEntries(place.filter(([, value]) => value !== undefined)),
  };
}

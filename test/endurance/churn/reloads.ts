/**
 * Reloads one module again and again while clients use it, with open uploads, downloads, streams
 * and websockets.
 */

import { readdirSync, readFileSync } from "node:fs";
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { createHost } from "#core/index.ts";
import type { ModuleRun } from "#core/types.ts";
import { eventually } from "#test/support/eventually.ts";
import { heapUsed } from "#test/support/heap.ts";
import type { Ports } from "#test/support/transports.ts";
import {
  fetchClient,
  holdRequest,
  holdWebsocket,
  http2Client,
  type OpenExchange,
  type Probe,
  rawClient,
  Worker,
} from "./clients.ts";
import { openSteady, steady } from "./steady.ts";

export interface ReloadReport {
  readonly reloads: number;
  /** Requests with a complete and correct response. */
  readonly responses: number;
  /** Responses that arrived during a reload. */
  readonly duringReload: number;
  /**
   * Uploads, downloads, event streams and websockets of the module that began before a reload and
   * ended correctly during it.
   */
  readonly spanning: number;
  /**
   * Messages and pieces through a websocket and a stream of another module, which stay open all the
   * time.
   */
  readonly echoed: number;
  readonly failures: readonly string[];
  /** Milliseconds of each reload, sorted. */
  readonly times: readonly number[];
  /** Bytes by which the heap and the process grow with each reload, after the first fifth. */
  readonly heap: number;
  readonly resident: number;
  /** Counts of what has been added since before the host was started, once it has stopped. */
  readonly left: Readonly<Record<keyof Holdings, number>>;
}

export interface ReloadOptions {
  readonly reloads: number;
  readonly run: ModuleRun;
  /** Minimum size of the module's file in bytes. */
  readonly size?: number;
}

/**
 * The module's state is the number of its instances. A download ends when the instance that began
 * it is unloaded.
 */
const CODE = `import { once } from "node:events";
import { buffer } from "node:stream/consumers";
import { event_stream } from "modhost/net/http/server";

export const depends = ["http"];

export default function load(module) {
  let instance = 1;
  module.save = () => instance;
  module.restore = (saved) => { instance = saved + 1; };
  module.provides("http", {
    streaming_uploads: true,
    default_headers: { content_type: "text/plain; charset=utf-8" },
    route: {
      "GET /": () => \`instance \${instance}.\`,
      "POST /upload": async ({ request }) => \`\${(await buffer(request.body_stream)).length} bytes\`,
      "GET /download": async function* ({ request }) {
        const { leaving } = request;
        yield "x".repeat(65536);
        if (!leaving.aborted) await once(leaving, "abort");
        yield "y".repeat(65536);
      },
      "GET /events": (event) => { void event_stream(event).send({ event: "begun", data: String(instance) }); },
      "WS /ws": async (event) => {
        const socket = event.accept();
        for await (const message of socket) await socket.send(message);
      },
    },
  });
}
`;

const uploaded: Probe = {
  method: "POST",
  path: "/reloaded/upload",
  body: "x".repeat(100_000),
  status: 200,
  holds: "100000 bytes",
};

const probes: readonly Probe[] = [
  { path: "/reloaded/", status: 200, holds: "instance" },
  { path: "/steady/", status: 200, holds: "steady" },
  { ...uploaded, body: "short", holds: "5 bytes" },
];

export async function reloadUnderLoad({ reloads, run, size = 0 }: ReloadOptions): Promise<ReloadReport> {
  const before = holdings();
  const folder = await mkdtemp(join(tmpdir(), "modhost-reloads-"));
  // The users that sandboxes have read the module as well.
  await chmod(folder, 0o755);
  const file = join(folder, "mod_reloaded.js");
  await writeFile(file, ofSize(CODE, size));
  const complaints: string[] = [];
  const host = createHost({
    modules: [steady, file],
    config: {
      modules_enabled: ["http"],
      modules: { reloaded: { run } },
      http_ports: [0],
      https_ports: [0],
      data_path: join(folder, "data"),
    },
    log: { level: "warn", destination: { write: (line) => complaints.push(line) } },
  });
  await host.start();
  const open = (scheme: string) => host.listening().find((port) => port.scheme === scheme)?.port ?? 0;
  const ports = { http: open("http"), https: open("https") };
  const clients = [fetchClient(ports), await rawClient(ports), http2Client(ports)];
  const workers = clients.map((client) => new Worker(client, probes));
  const countResponses = () => workers.reduce((sum, worker) => sum + worker.responses, 0);
  const all = (count: number) => Promise.all(workers.map((worker) => worker.more(count)));
  const throughout = await openSteady(ports.http);
  const failures: string[] = [];
  const times: number[] = [];
  let done = 0;
  let duringReload = 0;
  let spanning = 0;
  let echoed = 0;
  const settledAt = Math.ceil(reloads / 5);
  let settled = await memory();
  try {
    while (done < reloads && failures.length === 0) {
      const [upload, ...others] = await Promise.all([
        holdRequest(ports, uploaded),
        holdDownload(ports),
        holdEvents(ports, done + 1),
        holdWebsocket(ports, "/reloaded/ws", [1012]),
      ]);
      const earlier = countResponses();
      const began = performance.now();
      const reload = host.reload("reloaded");
      const ended = Promise.all(others.map((one) => one.finish()));
      // The other exchanges end when the instances are replaced. Then the upload ends on the
      // previous instance.
      const wrong = await Promise.race([ended, reload.then(() => ended)]);
      failures.push(...[...wrong, await upload.finish()].filter((one) => one !== undefined));
      await reload;
      times.push(performance.now() - began);
      duringReload += countResponses() - earlier;
      spanning += wrong.length + 1;
      done += 1;
      const state = await (await fetch(`http://127.0.0.1:${ports.http}/reloaded/`)).text();
      if (state !== `instance ${done + 1}.`) failures.push(`after ${done} reloads it is ${state}`);
      const cut = await throughout.exchange(done);
      if (cut !== undefined) failures.push(`the other module: ${cut}`);
      echoed += 2;
      await all(1);
      if (done === settledAt) settled = await memory();
    }
  } catch (error) {
    failures.push(`reload ${done + 1}: ${error instanceof Error ? error.message : error}`);
  } finally {
    await Promise.all(workers.map((worker) => worker.stop()));
    throughout.close();
    for (const client of clients) client[Symbol.dispose]();
  }
  const last = await memory();
  failures.push(...workers.flatMap((worker) => worker.failures), ...complaints.map((line) => `logged: ${line.trim()}`));
  await host.stop();
  await rm(folder, { recursive: true });
  const left = await holdingsSince(before);
  const each = (bytes: number) => bytes / Math.max(1, done - settledAt);
  return {
    reloads: done,
    responses: countResponses(),
    duringReload,
    spanning,
    echoed,
    failures,
    times: times.sort((one, other) => one - other),
    heap: each(last.heap - settled.heap),
    resident: each(last.resident - settled.resident),
    left,
  };
}

/** Counts of what a sandbox could leave behind. */
interface Holdings {
  readonly processes: number;
  readonly descriptors: number;
  readonly mounts: number;
}

/** Counts what this process has; undefined where the system does not say. */
function holdings(): Holdings | undefined {
  if (process.platform !== "linux") return undefined;
  const children = readdirSync("/proc/self/task").flatMap((task) => {
    try {
      return readFileSync(`/proc/self/task/${task}/children`, "utf8").split(" ").filter(Boolean);
    } catch {
      // The thread has ended.
      return [];
    }
  });
  return {
    processes: children.length,
    descriptors: readdirSync("/proc/self/fd").length,
    mounts: readFileSync("/proc/self/mountinfo", "utf8").split("\n").length,
  };
}

/** Returns what there is more of, after processes and connections had the time to end. */
async function holdingsSince(before: Holdings | undefined): Promise<ReloadReport["left"]> {
  const more = () => {
    const { processes = 0, descriptors = 0, mounts = 0 } = holdings() ?? {};
    const at = before ?? { processes: 0, descriptors: 0, mounts: 0 };
    return {
      processes: processes - at.processes,
      descriptors: descriptors - at.descriptors,
      mounts: mounts - at.mounts,
    };
  };
  const isClean = () => Object.values(more()).every((count) => count <= 0);
  await eventually("nothing is left", isClean, { within: 10_000 }).catch(() => undefined);
  return more();
}

/** Returns the bytes of heap that evaluating an ES module of this size costs, by `import` alone. */
export async function costOfImport(size: number): Promise<number> {
  const folder = await mkdtemp(join(tmpdir(), "modhost-import-"));
  const file = join(folder, "code.mjs");
  await writeFile(file, ofSize("export default 1;\n", size));
  const times = 100;
  const importAll = async (turn: string) => {
    for (let count = 0; count < times; count += 1) await import(`${pathToFileURL(file)}?${turn}=${count}`);
  };
  await importAll("first");
  const before = await heapUsed();
  await importAll("measured");
  const cost = ((await heapUsed()) - before) / times;
  await rm(folder, { recursive: true });
  return cost;
}

/**
 * Adds functions like those of modules, a quarter of which are called during the load, until the
 * file has this size.
 */
function ofSize(code: string, size: number): string {
  let text = code;
  for (let at = 0; text.length < size; at += 1) {
    text += `function part${at}(list) {
  const found = list.filter(({ name }) => name === "part ${at}").map(({ name, value }) => [name, value * ${at}]);
  if (found.length > ${at}) throw new Error("part ${at} found more than it should have: " + found.length);
  return Object.fromEntries(found);
}
${at % 4 === 0 ? `part${at}([{ name: "some part", value: ${at} }]);\n` : ""}`;
  }
  return text;
}

async function memory(): Promise<{ heap: number; resident: number }> {
  return { heap: await heapUsed(), resident: process.memoryUsage.rss() };
}

/** Begins a download, and resolves when its first half has arrived. */
async function holdDownload({ http }: Ports): Promise<OpenExchange> {
  const response = await fetch(`http://127.0.0.1:${http}/reloaded/download`);
  return {
    async finish() {
      const text = await response.text();
      return text === "x".repeat(65_536) + "y".repeat(65_536) ? undefined : `a download has ${text.length} bytes`;
    },
  };
}

/** Begins an event stream, which ends with the instance. */
async function holdEvents({ http }: Ports, instance: number): Promise<OpenExchange> {
  const response = await fetch(`http://127.0.0.1:${http}/reloaded/events`);
  return {
    async finish() {
      const text = await response.text();
      return text.includes(`data: ${instance}\n`) ? undefined : `an event stream gave ${JSON.stringify(text)}`;
    },
  };
}

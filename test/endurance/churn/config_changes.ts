/**
 * Changes the configuration of a host again and again while clients use it, with an open stream and
 * an open websocket.
 */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createHost, type Host } from "#core/index.ts";
import type { Module } from "#core/types.ts";
import { heapUsed } from "#test/support/heap.ts";
import { fetchClient, http2Client, rawClient, Worker } from "./clients.ts";
import { openSteady, plain, steady } from "./steady.ts";

export interface ConfigReport {
  readonly applied: number;
  /** Invalid configurations, which changed nothing. */
  readonly refused: number;
  /** Requests with a complete and correct response. */
  readonly responses: number;
  /** Responses that arrived during a change. */
  readonly duringChange: number;
  /** Messages of the websocket and pieces of the stream that came back. */
  readonly echoed: number;
  readonly failures: readonly string[];
  /** Milliseconds of each change, sorted. */
  readonly times: readonly number[];
  /** Bytes by which the heap grew from the first fifth to the end. */
  readonly grown: number;
}

type Values = Record<string, unknown>;

/** Changes of the configuration. Each differs from the previous one. */
const kinds: readonly ((values: Values, turn: number) => Values)[] = [
  (values, turn) => ({ ...values, changing_text: `text ${turn}` }),
  (values, turn) => ({ ...values, http_max_content_size: 1_000_000 + turn, http_progress_timeout: 20 + (turn % 10) }),
  (values, turn) => ({ ...values, http_paths: { extra: `/extra-${turn}` } }),
  (values) => ({ ...values, http_ports: (values.http_ports as number[]).length === 1 ? [0, 0] : [0] }),
  (values) => ({ ...values, modules_disabled: (values.modules_disabled as string[]).length > 0 ? [] : ["extra"] }),
  (values, turn) => ({ ...values, http_idle_timeout: 100 + (turn % 50), unload_grace: 5 + (turn % 3) }),
  (values) => ({ ...values, log_level: values.log_level === "error" ? "warn" : "error" }),
];

/** Interval, in changes, at which a change is invalid. */
const WRONG_EVERY = 9;

export async function changeConfig({ changes }: { readonly changes: number }): Promise<ConfigReport> {
  const folder = await mkdtemp(join(tmpdir(), "modhost-churn-config-"));
  const configPath = join(folder, "modhost.config.json");
  let values: Values = {
    modules_enabled: ["http"],
    modules_disabled: [],
    http_ports: [0],
    https_ports: [0],
    http_interfaces: ["127.0.0.1"],
    https_interfaces: ["127.0.0.1"],
    log_level: "warn",
  };
  const write = (next: Values | string) =>
    writeFile(configPath, typeof next === "string" ? next : JSON.stringify(next));
  await write(values);
  const complaints: string[] = [];
  const host = createHost({
    configPath,
    env: {},
    modules: [changing, steady, { name: "extra", load: extra }],
    log: { destination: { write: (line) => complaints.push(line) } },
  });
  await host.start();
  const open = (scheme: string) => host.listening().find((port) => port.scheme === scheme)?.port ?? 0;
  const ports = { http: open("http"), https: open("https") };
  const clients = [fetchClient(ports), await rawClient(ports), http2Client(ports)];
  const probes = [
    { path: "/changing/", status: 200, holds: "text" },
    { path: "/steady/", status: 200, holds: "steady" },
  ];
  const workers = clients.map((client) => new Worker(client, probes));
  const countResponses = () => workers.reduce((sum, worker) => sum + worker.responses, 0);
  const all = (count: number) => Promise.all(workers.map((worker) => worker.more(count)));
  const openExchange = await openSteady(ports.http);
  const failures: string[] = [];
  const times: number[] = [];
  let applied = 0;
  let refused = 0;
  let duringChange = 0;
  let echoed = 0;
  let settled = 0;
  try {
    for (let turn = 1; turn <= changes && failures.length === 0; turn += 1) {
      await all(1);
      const before = countResponses();
      if (turn % WRONG_EVERY === 0) {
        await write(turn % 2 === 0 ? "{ half of" : { ...values, changing_text: 1 });
        if (await applies(host)) failures.push(`change ${turn}: an invalid configuration was accepted`);
        refused += 1;
        continue;
      }
      values = kinds[turn % kinds.length]?.(values, turn) ?? values;
      await write(values);
      const began = performance.now();
      const change = host.apply();
      await Promise.race([change, all(1)]).catch(() => undefined);
      const plan = await change;
      times.push(performance.now() - began);
      duringChange += countResponses() - before;
      applied += 1;
      if (plan.isEmpty) failures.push(`change ${turn}: nothing differed`);
      const shown = await (await fetch(`http://127.0.0.1:${ports.http}/changing/`)).text();
      if (!shown.startsWith(String(values.changing_text ?? "text 0"))) failures.push(`change ${turn}: ${shown}`);
      const wrong = await openExchange.exchange(turn);
      if (wrong !== undefined) failures.push(`change ${turn}: ${wrong}`);
      echoed += 2;
      if (turn === Math.ceil(changes / 5)) settled = await heapUsed();
    }
  } catch (error) {
    failures.push(String(error));
  } finally {
    await Promise.all(workers.map((worker) => worker.stop()));
    openExchange.close();
    for (const client of clients) client[Symbol.dispose]();
  }
  failures.push(...workers.flatMap((worker) => worker.failures), ...complaints.map((line) => `logged: ${line.trim()}`));
  const grown = (await heapUsed()) - settled;
  await host.stop();
  await rm(folder, { recursive: true });
  times.sort((one, other) => one - other);
  return { applied, refused, responses: countResponses(), duringChange, echoed, failures, times, grown };
}

async function applies(host: Host): Promise<boolean> {
  return await host.apply().then(
    () => true,
    () => false,
  );
}

/**
 * A module that is reloaded by each change of its option. Its state is the number of its instances.
 */
const changing = {
  name: "changing",
  options: { changing_text: { type: "string" as const, default: "text 0", describe: "For a test." } },
  load(module: Module) {
    module.depends("http");
    let instances = 1;
    const text = module.get_option_string("changing_text");
    module.save = () => instances;
    module.restore = (saved) => void (instances = Number(saved) + 1);
    module.provides("http", { default_headers: plain, route: { "GET /": () => `${text}, instance ${instances}` } });
  },
};

function extra(module: Module): void {
  module.depends("http");
  module.provides("http", { route: { "GET /": () => "extra" } });
}

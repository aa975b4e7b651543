/**
 * Loads, reloads and unloads an example module again and again while clients use it, and measures
 * the heap.
 */

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { createHost, type Host, type InlineModule } from "#core/index.ts";
import { assertNothingLeft } from "#core/testing/index.ts";
import type { Module, ModuleDefinition, OwnedItem } from "#core/types.ts";
import { exampleFile, type exampleNames } from "#test/contract/docs/examples/support.ts";
import { heapUsed } from "#test/support/heap.ts";
import type { Ports } from "#test/support/transports.ts";
import { fetchClient, http2Client, type ProbeClient, rawClient, Worker } from "./clients.ts";
import { type Situation, situations } from "./examples.ts";

export type ExampleName = (typeof exampleNames)[number];

/**
 * `file`: the module is loaded by its path, and each load and reload evaluates the file again.
 * `value`: its code is imported once and passed to the host, so that nothing is evaluated again.
 */
export type ModuleForm = "file" | "value";

export interface ChurnReport {
  readonly example: ExampleName;
  readonly form: ModuleForm;
  readonly cycles: number;
  /** Requests with a complete and correct response. */
  readonly responses: number;
  /** Responses that arrived during a reload. */
  readonly duringReload: number;
  /**
   * Requests and websockets that began before the module was replaced or unloaded, and ended
   * afterwards.
   */
  readonly spanning: number;
  /** Requests to another app during all loads and unloads. */
  readonly neighbour: number;
  readonly failures: readonly string[];
  /**
   * Module objects that were made over all cycles, and how many of them are still on the heap at
   * the end.
   */
  readonly instances: number;
  readonly survivors: number;
  /** Bytes of heap after a collection, by cycle. Empty without `measureAt`. */
  readonly heap: ReadonlyMap<number, number>;
}

export interface ChurnOptions {
  readonly cycles: number;
  readonly form: ModuleForm;
  /** Cycles after which the heap is measured. */
  readonly measureAt?: readonly number[];
}

export async function churn(example: ExampleName, options: ChurnOptions): Promise<ChurnReport> {
  const situation = await situations[example]();
  try {
    return await churnIn(situation, example, options);
  } finally {
    // Even if the host does not start: an open server would keep the process alive.
    await situation.close?.();
  }
}

async function churnIn(
  situation: Situation,
  example: ExampleName,
  { cycles, form, measureAt = [] }: ChurnOptions,
): Promise<ChurnReport> {
  const folder = await mkdtemp(join(tmpdir(), "modhost-churn-"));
  const watch = new Watch(example);
  const complaints: string[] = [];
  // A host that discards its log, unlike that of the test kit, because the heap is measured here.
  const host = createHost({
    modules: [watch.module, ...(form === "value" ? [await asValue(example)] : [])],
    config: {
      ...situation.config,
      modules_enabled: ["http_health", "http_dir_listing"],
      http_ports: [0],
      https_ports: [0],
      http_log: false,
      data_path: folder,
    },
    log: { level: "warn", destination: { write: (line) => complaints.push(line) } },
  });
  await host.start();
  // Discards the warning that nothing reads the options of the example yet.
  complaints.length = 0;
  if (form === "value") await host.unload(example);
  const ports = portsOf(host);
  const counts = { responses: 0, duringReload: 0, spanning: 0 };
  const failures: string[] = [];
  const heap = new Map<number, number>();
  let survivors = 0;
  const raw = await rawClient(ports);
  const clients = [fetchClient(ports), raw, http2Client(ports)];
  const probeOfNeighbour = { path: "/health/live", status: 200, holds: "" };
  using neighbourClient = await rawClient(ports);
  const neighbour = new Worker(neighbourClient, [probeOfNeighbour]);
  try {
    for (let cycle = 1; cycle <= cycles && failures.length + complaints.length === 0; cycle += 1) {
      await host.load(form === "value" ? example : exampleFile(example));
      await useAndReload({ host, example, situation, clients, ports, watch, counts, failures });
      await unloadWithRequest({ host, example, situation, clients, ports, watch, counts, failures });
      await assertNothingLeft(host, example);
      const path = situation.probes[0]?.path ?? "/";
      const { status } = await raw.ask({ path, status: 404, holds: "" });
      if (status !== 404) failures.push(`${path} has status ${status} after the unload`);
      await situation.tidy?.(folder);
      if (measureAt.includes(cycle)) heap.set(cycle, await heapUsed());
    }
    await heapUsed();
    survivors = watch.alive();
  } finally {
    await neighbour.stop();
    for (const client of clients) client[Symbol.dispose]();
    await host.stop();
    await rm(folder, { recursive: true });
  }
  failures.push(...neighbour.failures);
  failures.push(...complaints.map((line) => `logged: ${line.trim()}`));
  return {
    example,
    form,
    cycles,
    ...counts,
    neighbour: neighbour.responses,
    failures,
    instances: watch.seen.length,
    survivors,
    heap,
  };
}

interface Cycle {
  readonly host: Host;
  readonly example: ExampleName;
  readonly situation: Situation;
  readonly clients: readonly ProbeClient[];
  readonly ports: Ports;
  readonly watch: Watch;
  readonly counts: { responses: number; duringReload: number; spanning: number };
  readonly failures: string[];
}

/**
 * Every client sends requests before, during and after the reload. One request begins before it and
 * ends afterwards.
 */
async function useAndReload({ host, example, situation, clients, ports, watch, counts, failures }: Cycle) {
  const workers = clients.map((client) => new Worker(client, situation.probes));
  const countResponses = () => workers.reduce((sum, worker) => sum + worker.responses, 0);
  const all = (count: number) => Promise.all(workers.map((worker) => worker.more(count)));
  try {
    await all(2);
    const open = await situation.hold?.(ports);
    const before = countResponses();
    const replaced = watch.next("added");
    const reload = host.reload(example);
    await Promise.race([replaced, reload]);
    await all(2);
    const wrong = await open?.finish();
    if (wrong !== undefined) failures.push(`open during the reload: ${wrong}`);
    if (open !== undefined) counts.spanning += 1;
    await reload;
    counts.duringReload += countResponses() - before;
    await all(2);
  } finally {
    await Promise.all(workers.map((worker) => worker.stop()));
    counts.responses += countResponses();
    failures.push(...workers.flatMap((worker) => worker.failures));
  }
}

/**
 * Nobody sends new requests to an app that is being unloaded, but a request that has begun gets its
 * response.
 */
async function unloadWithRequest({ host, example, situation, ports, watch, counts, failures }: Cycle) {
  const open = await situation.hold?.(ports);
  const withdrawn = watch.next("removed");
  const unload = host.unload(example);
  await withdrawn;
  const wrong = await open?.finish();
  if (wrong !== undefined) failures.push(`open during the unload: ${wrong}`);
  if (open !== undefined) counts.spanning += 1;
  await unload;
}

/** Records when the app of the example appears and disappears, as the provider point reports it. */
class Watch {
  readonly #example: string;
  /** Every module object of the example that has provided an app. */
  readonly seen: WeakRef<Module>[] = [];
  #waiting: { readonly step: "added" | "removed"; readonly seen: () => void }[] = [];

  constructor(example: string) {
    this.#example = example;
  }

  readonly module: InlineModule = {
    name: "watch",
    load: (module: Module) => {
      const saw = (step: "added" | "removed") => (item: OwnedItem) => {
        if (item.owner.name !== this.#example) return;
        if (step === "added") this.seen.push(new WeakRef(item.owner));
        const seen = this.#waiting.filter((waiting) => waiting.step === step);
        this.#waiting = this.#waiting.filter((waiting) => waiting.step !== step);
        for (const waiting of seen) waiting.seen();
      };
      module.handle_items("http-provider", saw("added"), saw("removed"));
    },
  };

  alive(): number {
    return this.seen.filter((module) => module.deref() !== undefined).length;
  }

  next(step: "added" | "removed"): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiting.push({ step, seen: resolve });
    return promise;
  }
}

/** Returns the file that contains the default function of an example. */
export function codeFile(example: ExampleName): string {
  const file = exampleFile(example);
  return file.endsWith(".ts") ? file : join(file, "index.ts");
}

async function asValue(example: ExampleName): Promise<InlineModule> {
  const exported: Record<string, unknown> = await import(pathToFileURL(codeFile(example)).href);
  const { default: load, ...definition } = exported;
  return { ...definition, load: load as ModuleDefinition["load"], name: example };
}

function portsOf(host: Host): Ports {
  const port = (scheme: string) => host.listening().find((open) => open.scheme === scheme)?.port ?? 0;
  return { http: port("http"), https: port("https") };
}

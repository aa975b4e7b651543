/**
 * Runs a sound module next to one that misbehaves, and records the effect on the sound module's
 * clients.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { createTestHost } from "#core/testing/index.ts";
import { folderOfFiles } from "./files.ts";

/** Misbehaviour of the other module by name: code of a handler, or of its top level. */
export const faults = {
  nothing: "",
  throws: "route.GET = () => { throw new Error('thrown'); };",
  timers:
    "module.add_timer(0, () => { throw new Error('in a timer'); }); route.GET = () => { module.add_timer(0, () => { throw new Error('in a timer'); }); return 'ok'; };",
  rejects: "route.GET = () => { Promise.reject(new Error('rejected')); return 'ok'; };",
  hogs: "route.GET = () => { const end = Date.now() + 300; while (Date.now() < end); return 'ok'; };",
  exits: "route.GET = () => process.exit(1);",
  loops: "route.GET = () => { for (;;); };",
  leaks:
    "const kept = []; route.GET = () => { for (let at = 0; at < 50; at += 1) kept.push(new Array(10_000).fill(at)); return 'ok'; };",
} as const;

export type Fault = keyof typeof faults;

export interface FaultReport {
  readonly fault: Fault;
  readonly isolated: boolean;
  /** Number of the sound module's responses. */
  readonly responses: number;
  /** Number of requests without the right response. */
  readonly failed: number;
  /** Milliseconds of each request, in order. */
  readonly times: readonly number[];
  /**
   * Number of requests and seconds until the other module responded with 503, because it was
   * quarantined.
   */
  readonly quarantined: { readonly after: number; readonly seconds: number } | undefined;
  /** Responses of the other module by status; 0 stands for none. */
  readonly statuses: ReadonlyMap<number, number>;
}

export interface FaultOptions {
  readonly isolated: boolean;
  /** Number of requests to the sound module. */
  readonly requests: number;
  /** Milliseconds between two requests to the other module. */
  readonly every: number;
}

export async function misbehave(fault: Fault, { isolated, requests, every }: FaultOptions): Promise<FaultReport> {
  const files = {
    "mod_sound.js":
      "export const depends = ['http']; export default (module) => module.provides('http', { route: { GET: () => 'sound' } });",
    "mod_wild.js": `export const depends = ['http']; export default (module) => { const route = { GET: () => 'ok' }; ${faults[fault]} module.provides('http', { route }); }`,
  };
  await using folder = await folderOfFiles(files);
  await using running = await createTestHost({
    config: {
      plugin_paths: [folder.path],
      plugin_autoload: true,
      modules_isolated: isolated ? ["wild"] : [],
      isolated_timeout: 2,
      isolated_heap: "64MiB",
      log_level: "error",
    },
  });
  const report = (error: unknown) => running.host.report(error);
  process.on("unhandledRejection", report);
  const statuses = new Map<number, number>();
  const times: number[] = [];
  let failed = 0;
  let out: FaultReport["quarantined"];
  const start = performance.now();
  let isOver = false;
  const poke = async () => {
    const { status } = await running
      .fetch("/wild", { signal: AbortSignal.timeout(10_000) })
      .catch(() => ({ status: 0 }));
    statuses.set(status, (statuses.get(status) ?? 0) + 1);
    if (status === 503) out ??= { after: times.length, seconds: (performance.now() - start) / 1000 };
  };
  const poking = (async () => {
    const open = new Set<Promise<void>>();
    while (!isOver) {
      const one = poke().finally(() => open.delete(one));
      open.add(one);
      await sleep(every);
    }
    await Promise.all(open);
  })();
  try {
    for (let count = 0; count < requests; count += 1) {
      const begun = performance.now();
      const text = await running.fetch("/sound").then(
        (response) => response.text(),
        () => "",
      );
      times.push(performance.now() - begun);
      if (text !== "sound") failed += 1;
      await sleep(1);
    }
  } finally {
    isOver = true;
    await poking;
    process.off("unhandledRejection", report);
  }
  return { fault, isolated, responses: times.length - failed, failed, times, quarantined: out, statuses };
}

/**
 * Collects diagnostics of V8 and Node from a running process, to find out why it is slow. They
 * contain no memory contents, because these include keys.
 */
import type { Session } from "node:inspector/promises";
import { setTimeout as delay } from "node:timers/promises";
import { getHeapSpaceStatistics, getHeapStatistics } from "node:v8";
import { failure } from "./errors.ts";
import { ownPackage } from "./packages.ts";
import { versionFacts } from "./version.ts";
import type { ZipEntry } from "./zip.ts";

export interface ProfileSettings {
  /** Names of the collectors to run, as in Kubo. */
  readonly collectors: readonly string[];
  /** Milliseconds to sample for; 0 disables the sampling collectors. */
  readonly milliseconds: number;
  readonly signal: AbortSignal;
}

const MAX_SAMPLING_MS = 3_600_000;

type Collect = (settings: ProfileSettings) => Promise<ZipEntry> | ZipEntry;

const json = (name: string, content: unknown): ZipEntry => ({
  name,
  content: Buffer.from(`${JSON.stringify(content, undefined, 2)}\n`),
});

/** Collectors that sample for a time. */
const sampling: Readonly<Record<string, Collect>> = {
  cpu: ({ milliseconds, signal }) =>
    sampled("cpu.cpuprofile", async (session) => {
      await session.post("Profiler.enable");
      await session.post("Profiler.start");
      await delay(milliseconds, undefined, { signal });
      return (await session.post("Profiler.stop")).profile;
    }),
  allocs: ({ milliseconds, signal }) =>
    sampled("allocs.heapprofile", async (session) => {
      await session.post("HeapProfiler.startSampling");
      await delay(milliseconds, undefined, { signal });
      return (await session.post("HeapProfiler.stopSampling")).profile;
    }),
};

const atOnce: Readonly<Record<string, Collect>> = {
  version: async () => {
    const { name, version } = await ownPackage();
    const { system } = versionFacts();
    return json("version.json", { Program: name, Version: version, System: system, ...process.versions });
  },
  heap: () =>
    json("heap.json", { memory: process.memoryUsage(), ...getHeapStatistics(), spaces: getHeapSpaceStatistics() }),
  "goroutines-stack": () => {
    const counts = Object.entries(Object.groupBy(process.getActiveResourcesInfo(), (kind) => kind));
    return json("resources.json", Object.fromEntries(counts.map(([kind, all = []]) => [kind, all.length])));
  },
};

/** Kubo's collectors of the Go runtime that have no counterpart in Node. */
const WITHOUT = ["goroutines-pprof", "bin", "mutex", "block", "trace"];

/**
 * All valid names. Collectors without a counterpart collect nothing, and `left_out.json` lists
 * them.
 */
export const collectorNames: readonly string[] = [...Object.keys(atOnce), ...Object.keys(sampling), ...WITHOUT];

/**
 * Yields the files of a profile. The sampling collectors run at the same time.
 * @throws NodeError for an unknown collector, and while somebody else is sampling
 */
export async function* profile(settings: ProfileSettings): AsyncGenerator<ZipEntry, void, undefined> {
  const { collectors, milliseconds } = settings;
  const requested = [...new Set(collectors)];
  const odd = requested.find((name) => !collectorNames.includes(name));
  if (odd !== undefined) throw failure("OPTION_INVALID", { reason: `unknown collector '${odd}'` });
  for (const name of requested) {
    const collect = atOnce[name];
    if (collect !== undefined) yield collect(settings);
  }
  const left = requested.filter((name) => WITHOUT.includes(name));
  if (left.length > 0) yield json("left_out.json", { "not in Node.js": left });
  const wanted = requested.flatMap((name) => sampling[name] ?? []);
  if (milliseconds > 0 && wanted.length > 0) yield* await together(wanted, settings);
}

/**
 * Whether somebody is sampling. Samples use memory while they are taken, and V8 has one profiler
 * per process: a second caller would end the sampling of the first.
 */
let isSampling = false;

/** Runs the collectors at the same time; when one fails, the others end as well. */
async function together(wanted: readonly Collect[], settings: ProfileSettings): Promise<readonly ZipEntry[]> {
  if (settings.milliseconds > MAX_SAMPLING_MS)
    throw failure("OPTION_INVALID", { reason: "samples are taken for at most 1h" });
  if (isSampling)
    throw failure("BUSY", { reason: "another profile is being taken: samples are taken for one at a time" });
  isSampling = true;
  const end = new AbortController();
  const signal = AbortSignal.any([settings.signal, end.signal]);
  const running = wanted.map(async (collect) => collect({ ...settings, signal }));
  try {
    return await Promise.all(running);
  } finally {
    end.abort();
    await Promise.allSettled(running);
    isSampling = false;
  }
}

async function sampled(name: string, sample: (session: Session) => Promise<unknown>): Promise<ZipEntry> {
  const { Session } = process.getBuiltinModule("node:inspector/promises");
  const session = new Session();
  session.connect();
  try {
    return { name, content: Buffer.from(JSON.stringify(await sample(session))) };
  } finally {
    session.disconnect();
  }
}

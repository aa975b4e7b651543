import { createHash } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { keystream } from "#test/support/content.ts";
import type { RpcServer } from "#test/support/rpc_server.ts";
import { Subject } from "./measure.ts";
import { exchange } from "./node/client.ts";
import { file } from "./node/content.ts";
import { installed } from "./node/servers.ts";
import { cpuSeconds, forgetPeak, peakBytes } from "./node/usage.ts";
import { type BenchReport, type ReportSection, spread } from "./report.ts";
import { getBare, putBare } from "./scale/bare_s3.ts";
import { type StoreEngines, s3Name, startEngines } from "./scale/engines.ts";
import { cpuOf, forgetPeaks, type HostGroup, type Program, peakOf, requestsOf, startHost } from "./scale/hosts.ts";
import { fill, measureNewHost, type NewHost } from "./scale/new_host.ts";
import { addFile, catFile, type SharedStoreScale, type SharedStoreWork, works } from "./scale/works.ts";
import { LimitedLine } from "./sources/line.ts";

const MEBIBYTE = 2 ** 20;
const SMALL_FILES = 1000;
const CALLS = 500;
/** Files for the warm-up are as large as the measured one, but not larger than this. */
const MAX_WARM_UP_BYTES = 16 * MEBIBYTE;
/** Share of a line's bits that Ethernet, IP and TCP leave to HTTP. */
const PAYLOAD = 0.94;

export interface ScaleBenchOptions {
  readonly rounds?: number;
  /** MiB of the large file. */
  readonly size?: number;
  /** Maximum number of hosts at the same time. */
  readonly hosts?: number;
  /** Number of blocks in the store that a new host joins; 0 leaves this part out. */
  readonly blocks?: number;
  /**
   * Mbit/s of the line between one more host and the objects. Default 1000; 0 leaves this part out.
   */
  readonly line?: number;
  /** Small files of one request, and calls of each kind. */
  readonly files?: number;
  readonly calls?: number;
  /** Regular expression: only works with a matching name. */
  readonly only?: string;
  /** The program to start. Default: the installed package. */
  readonly program?: Program;
}

/** A measurement per host, where several share the work. */
interface Sample {
  /** Duration of the work of all hosts. */
  readonly seconds: number;
  readonly amount: number;
  readonly cpu: number;
  readonly s3: number;
  readonly sql: number;
  readonly requests: number;
  /** Highest peak memory of any host in bytes. */
  readonly peak: number;
}

const noSample: Sample = {
  seconds: Number.NaN,
  amount: Number.NaN,
  cpu: Number.NaN,
  s3: Number.NaN,
  sql: Number.NaN,
  requests: Number.NaN,
  peak: Number.NaN,
};

/** A sample for each round, by work and by the name of the turn. */
type Samples = ReadonlyMap<SharedStoreWork, Map<string, Sample[]>>;

/** A name, and a function that measures a work. */
interface Turn {
  readonly name: string;
  readonly measure: (work: SharedStoreWork, seed: number) => Promise<Sample>;
  readonly takes: (work: SharedStoreWork) => boolean;
}

const EMBEDDED = "its own store";
const LIMIT = "hash, append and PUT";
const PLAIN_GET = "GET";
const FAR = "1 host, over the line";
const FAR_GET = "GET, over the line";

/**
 * Compares hosts on one store (PostgreSQL and S3), one, two and more at the same time, with a host
 * on a store of its own and with a bare client of the object store. Then it measures how long a new
 * host takes on a store of many blocks. All take turns, on new stores in each round. Ratios are
 * taken within each round; the tables show medians.
 */
export async function benchScale(options: ScaleBenchOptions, report: BenchReport): Promise<void> {
  if (process.platform !== "linux") throw new Error("This needs Linux: /proc reports CPU time");
  const { rounds = 3, size = 256, hosts = 3, line = 1000, blocks = 1_000_000, only = "" } = options;
  const scale: SharedStoreScale = {
    size: size * MEBIBYTE,
    files: options.files ?? SMALL_FILES,
    calls: options.calls ?? CALLS,
  };
  const chosen = (name: string) => new RegExp(only).test(name);
  await using package_ = options.program === undefined ? await installed() : undefined;
  const program = options.program ?? (package_ as Program);
  const samples: Samples = new Map(works.filter(({ name }) => chosen(name)).map((work) => [work, new Map()]));
  const how = `${rounds} rounds, file of ${size} MiB, S3 by ${s3Name}`;
  if (samples.size > 0) {
    const section = report.section("scale", { how, isWhole: samples.size === works.length && hosts > 1 && line > 0 });
    for (let round = 1; round <= rounds; round += 1) await playRound({ program, scale, hosts, line, round }, samples);
    for (const [work, by] of samples) printWork(section, work, by, scale);
  }
  if (blocks > 0 && chosen("new host")) {
    const section = report.section("scale, new host", { how: `${rounds} rounds, S3 by ${s3Name}` });
    const found: NewHost[][] = [];
    await withStore(async (engines, folder) => {
      const writer = await startHost(program, folder, "writer", engines.settings);
      const cid = await fill(writer, blocks).finally(() => writer.stop());
      for (let round = 1; round <= rounds; round += 1) {
        const measure = () => measureNewHost(program, folder, `new${round}`, engines.settings, { cid, blocks });
        found.push([await measure(), await measure()]);
      }
    });
    printNewHost(section, found, blocks);
  }
}

/** Runs a function on a new store, in a new folder. */
async function withStore(run: (engines: StoreEngines, folder: string) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "modhost-bench-"));
  try {
    await using engines = await startEngines();
    await run(engines, folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

interface Round {
  readonly program: Program;
  readonly scale: SharedStoreScale;
  readonly hosts: number;
  readonly line: number;
  readonly round: number;
}

async function playRound({ program, scale, hosts, line, round }: Round, samples: Samples): Promise<void> {
  await withStore(async (engines, folder) => {
    await using started = new AsyncDisposableStack();
    const host = async (name: string, store?: StoreEngines["settings"]) =>
      started.use(await startHost(program, folder, name, store));
    const embedded = await host("embedded");
    const sharing: RpcServer[] = [];
    // There are at least two hosts, so that another host has written the content that is read cold.
    for (let at = 1; at <= Math.max(2, hosts); at += 1) sharing.push(await host(`host${at}`, engines.settings));
    const groups: HostGroup[] = [{ name: EMBEDDED, servers: [embedded] }];
    for (let count = 1; count <= hosts; count += 1)
      groups.push({ name: count === 1 ? "1 host" : `${count} hosts`, servers: sharing.slice(0, count) });
    const plain = await startLimit(engines, folder);
    started.defer(() => plain.stop());
    const far = line === 0 ? undefined : farAway(engines, started.use(await openLine(engines, line)));
    const distant = far && (await host("far", far.settings));
    const shared = [...sharing, ...(distant ? [distant] : [])];
    const warmUpBytes = Math.min(MAX_WARM_UP_BYTES, scale.size);
    const cids = await Promise.all(shared.map((server, at) => warmUp(server, warmUpBytes, round * 100 + at)));
    await warmUp(embedded, warmUpBytes, round * 100 + shared.length);
    // Content that another host has added is read from the objects.
    const other = (at: number) => cids.at(at - 1) as string;
    await Promise.all(shared.map(({ url }, at) => catFile(url, other(at), warmUpBytes)));
    const turns = [
      ...groups.map((group) => turnOf(group, { engines, scale, sharing })),
      limitOfAdd(plain, engines, scale),
      limitOfGet(PLAIN_GET, engines, scale),
    ];
    if (far && distant) {
      turns.push(turnOf({ name: FAR, servers: [distant] }, { engines: far, scale, sharing: [distant, ...sharing] }));
      turns.push(limitOfGet(FAR_GET, far, scale));
    }
    for (const [nth, [work, by]] of [...samples].entries()) {
      for (const { name, takes } of turns) if (takes(work) && !by.has(name)) by.set(name, []);
      // Each is first in some rounds.
      const from = round % turns.length;
      for (const [at, turn] of [...turns.slice(from), ...turns.slice(0, from)].entries()) {
        if (!turn.takes(work)) continue;
        const seed = (round * works.length + nth) * 100 + at * 10;
        const sample = await turn.measure(work, seed).catch((error: Error) => {
          console.error(`${turn.name}, ${work.name}: ${error.message}`);
          return noSample;
        });
        by.get(turn.name)?.push(sample);
      }
    }
  });
}

/** Warms up a host. Resolves to the CID of the added file. */
async function warmUp({ url }: RpcServer, bytes: number, seed: number): Promise<string> {
  const cid = await addFile(url, bytes, seed);
  await catFile(url, cid, bytes);
  return cid;
}

interface Around {
  readonly engines: Omit<StoreEngines, typeof Symbol.asyncDispose>;
  readonly scale: SharedStoreScale;
  readonly sharing: readonly RpcServer[];
}

function turnOf({ name, servers }: HostGroup, { engines, scale, sharing }: Around): Turn {
  const isShared = servers.some((server) => sharing.includes(server));
  return {
    name,
    takes: ({ needsWriter = false, limit }) => (name === FAR ? limit === "get" : isShared || !needsWriter),
    async measure(work, seed) {
      const parts = servers.map(({ url }, at) => {
        const writer = isShared ? sharing[(at + 1) % sharing.length]?.url : undefined;
        return { ...scale, url, writer, seed: seed + at };
      });
      const runs = await Promise.all(parts.map((part) => work.prepare(part)));
      const requests = await requestsOf(servers);
      forgetPeaks(servers);
      const spent = await spend(
        engines,
        () => cpuOf(servers),
        () => Promise.all(runs.map((run) => run())),
      );
      return {
        ...spent,
        amount: work.amount(scale) * servers.length,
        cpu: spent.cpu / servers.length,
        s3: spent.s3 / servers.length,
        sql: spent.sql / servers.length,
        requests: ((await requestsOf(servers)) - requests) / servers.length,
        peak: peakOf(servers),
      };
    },
  };
}

/** Returns the CPU time of the hosts and of the engines. */
async function spend({ pids }: Pick<StoreEngines, "pids">, cpu: () => number, run: () => Promise<unknown>) {
  const all = () => ({ cpu: cpu(), s3: cpuSeconds(pids.s3), sql: cpuSeconds(pids.sql) });
  const before = all();
  const began = performance.now();
  await run();
  const seconds = (performance.now() - began) / 1000;
  const after = all();
  return { seconds, cpu: after.cpu - before.cpu, s3: after.s3 - before.s3, sql: after.sql - before.sql };
}

const startLimit = ({ bare }: StoreEngines, folder: string): Promise<Subject> =>
  Subject.start(LIMIT, "plain_shared_store.ts", "/", { BENCH_FOLDER: folder, BENCH_STORE: JSON.stringify(bare) });

function limitOfAdd({ pid, port }: Subject, engines: StoreEngines, scale: SharedStoreScale): Turn {
  return {
    name: LIMIT,
    takes: ({ limit }) => limit === "add",
    async measure(work, seed) {
      forgetPeak(pid);
      const add = () => exchange(`http://127.0.0.1:${port}`, "/api/v0/add", file(scale.size, seed));
      const spent = await spend(engines, () => cpuSeconds(pid), add);
      return { ...spent, amount: work.amount(scale), requests: Number.NaN, peak: peakBytes(pid) };
    },
  };
}

const openLine = ({ bare }: StoreEngines, mbits: number): Promise<LimitedLine> =>
  LimitedLine.open(Number(new URL(bare.endpoint).port), (mbits * 1e6 * PAYLOAD) / 8);

/** Returns the same engines, with a line between the host and the objects. */
function farAway({ pids, settings, bare }: StoreEngines, { port }: LimitedLine): Around["engines"] {
  const endpoint = `http://127.0.0.1:${port}`;
  return { pids, settings: { ...settings, endpoint }, bare: { ...bare, endpoint } };
}

function limitOfGet(name: string, engines: Around["engines"], scale: SharedStoreScale): Turn {
  return {
    name,
    takes: ({ limit }) => limit === "get",
    async measure(work, seed) {
      const key = `plain/get${seed}`;
      const pieces = [...keystream(scale.size, seed)];
      const hash = createHash("sha256");
      for (const piece of pieces) hash.update(piece);
      await putBare(engines.bare, key, pieces, hash.digest("hex"));
      const get = async () => {
        const bytes = await getBare(engines.bare, key);
        if (bytes < scale.size) throw new Error(`GET gave ${bytes} bytes of ${scale.size}`);
      };
      const spent = await spend(engines, () => cpuSeconds(process.pid), get);
      return { ...spent, amount: work.amount(scale), requests: 1, peak: Number.NaN };
    },
  };
}

/**
 * Ratios refer to the host with its own store, or, where that is not measured, to a bare GET over
 * the same line.
 */
function printWork(
  section: ReportSection,
  work: SharedStoreWork,
  by: ReadonlyMap<string, readonly Sample[]>,
  scale: SharedStoreScale,
): void {
  const near = by.get(EMBEDDED) ?? by.get(PLAIN_GET) ?? [];
  const limit = by.get(LIMIT);
  const perGibibyte = work.unit === "MiB/s";
  const requestsUnit = perGibibyte ? "requests per GiB" : "requests";
  const toLimits = limit === undefined ? [] : ["x the least"];
  section.head([
    ...[work.name, work.unit, "x", ...toLimits, "CPU of a host (s)", "x", "S3", "PostgreSQL"],
    ...[requestsUnit, "peak (MiB)"],
  ]);
  for (const [name, own] of by) {
    const base = (name === FAR ? by.get(FAR_GET) : undefined) ?? near;
    const ratio = (to: readonly Sample[], metric: (sample: Sample) => number) =>
      spread(
        own.map((sample, round) => metric(sample) / metric(to[round] ?? noSample)),
        2,
      );
    const shown = (digits: number, metric: (sample: Sample) => number) => spread(own.map(metric), digits);
    const rate = ({ amount, seconds }: Sample) => amount / seconds;
    const cpu = ({ cpu }: Sample) => cpu;
    const toLimit = limit === undefined ? [] : [ratio(limit, rate)];
    const gibibytes = perGibibyte ? scale.size / 2 ** 30 : 1;
    section.row([
      name,
      shown(0, rate),
      ratio(base, rate),
      ...toLimit,
      shown(2, cpu),
      ratio(base, cpu),
      shown(2, ({ s3 }) => s3),
      shown(2, ({ sql }) => sql),
      shown(0, ({ requests }) => requests / gibibytes),
      shown(0, ({ peak }) => peak / MEBIBYTE),
    ]);
  }
}

function printNewHost(section: ReportSection, rounds: readonly (readonly NewHost[])[], blocks: number): void {
  const columns: readonly (readonly [name: string, digits: number, metric: (found: NewHost) => number])[] = [
    ["first response (s)", 2, ({ first }) => first],
    ["first block (s)", 2, ({ block }) => block],
    ["CPU (s)", 2, ({ cpu }) => cpu],
    ["requests", 0, ({ requests }) => requests],
    ["whole index (s)", 2, ({ whole }) => whole],
    ["CPU (s)", 2, ({ wholeCpu }) => wholeCpu],
    ["peak (MiB)", 0, ({ peak }) => peak / MEBIBYTE],
  ];
  section.head([`on a store of ${blocks.toLocaleString("en")} blocks`, ...columns.map(([name]) => name)]);
  for (const [at, name] of ["a new host", "started again"].entries()) {
    const samples = rounds.flatMap((found) => found[at] ?? []);
    section.row([name, ...columns.map(([, digits, metric]) => spread(samples.map(metric), digits))]);
  }
  const indexed = rounds.flat().map((found) => found.indexed);
  section.line();
  section.line(`The index has ${spread(indexed, 0)} bytes for each block.`);
}

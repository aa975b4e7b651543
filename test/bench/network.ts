import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { median } from "./measure.ts";
import { LongLine } from "./network/delay.ts";
import { folderOf, kinds, type Peer, type PeerKind } from "./network/peers.ts";
import { cpuSeconds, forgetPeak, peakBytes } from "./node/usage.ts";
import { type BenchReport, Comparison, type ReportSection, spread, versionsOf, versionsOfPeers } from "./report.ts";

const mebibyte = 2 ** 20;

export interface NetworkBenchOptions {
  readonly rounds?: number;
  /** MiB of the large file. */
  readonly size?: number;
  /** Milliseconds that are added to each round trip. Default 0. */
  readonly delay?: number;
  /** Regular expression: only works with a matching name. */
  readonly only?: string;
}

interface Work {
  readonly name: string;
  /** The goal, as a rate. */
  readonly aim?: string;
  readonly unit: string;
  /** Bytes of the content, and of each of its blocks. */
  readonly bytes: number;
  readonly chunk: number;
  /** Number of units, for rates. */
  readonly amount: number;
}

/**
 * A measurement of one kind in one round, with the CPU time and memory of the sending and the
 * receiving process.
 */
interface Sample {
  readonly speed: number;
  readonly cpu: readonly [giving: number, taking: number];
  readonly peak: readonly [giving: number, taking: number];
}

const noSample: Sample = { speed: Number.NaN, cpu: [Number.NaN, Number.NaN], peak: [Number.NaN, Number.NaN] };

/** Latencies in milliseconds. */
interface Latency {
  readonly connect: number;
  readonly ping: number;
}

const dials = 20;
const echoes = 200;
const smallBlocks = 10_000;
const smallBytes = 4096;

/**
 * Compares the transfer of content from one process to another with peers of other implementations,
 * and with the cost of a socket and of the hashes. They take turns, with new stores and processes
 * in each round. Ratios are taken within each round; the tables show medians.
 */
export async function benchNetwork(
  { rounds = 3, size = 256, delay = 0, only = "" }: NetworkBenchOptions,
  report: BenchReport,
): Promise<void> {
  const all: readonly Work[] = [
    {
      name: `a file of ${size} MiB`,
      aim: delay === 0 ? "250 MiB/s" : "0.8 x a libp2p stream, 4 x Kubo",
      unit: "MiB/s",
      bytes: size * mebibyte,
      chunk: 256 * 1024,
      amount: size,
    },
    {
      name: `${smallBlocks.toLocaleString("en")} blocks of 4 KiB`,
      unit: "blocks/s",
      bytes: smallBlocks * smallBytes,
      chunk: smallBytes,
      amount: smallBlocks,
    },
  ];
  const works = all.filter(({ name }) => new RegExp(only).test(name));
  const contestants = kinds();
  const samples: Samples = new Map(works.map((work) => [work, new Map<string, Sample[]>()]));
  const latencies = new Map<PeerKind, Latency[]>();
  const how = `${rounds} rounds${delay === 0 ? "" : `, ${delay} ms of a round trip added`}`;
  const { HELIA: helia } = process.env;
  const versions = [...versionsOfPeers(), ...(helia === undefined ? [] : versionsOf(["helia"], helia))];
  const name = delay === 0 ? "network" : "network, delay";
  const section = report.section(name, { how, versions, isWhole: works.length === all.length });
  for (let round = 1; round <= rounds; round += 1) {
    for (const kind of contestants) await play(kind, { round, delay }, samples, latencies);
  }
  printWorks(section, samples);
  printLatencies(section, latencies);
}

type Samples = ReadonlyMap<Work, Map<string, Sample[]>>;

async function play(
  kind: PeerKind,
  { round, delay }: { readonly round: number; readonly delay: number },
  samples: Samples,
  latencies: Map<PeerKind, Latency[]>,
): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "modhost-bench-"));
  const peers: Peer[] = [];
  try {
    for (const role of ["giving", "taking"]) peers.push(await kind.start(folderOf(folder, kind, role)));
    const [giving, taking] = peers as [Peer, Peer];
    await using line = delay === 0 ? undefined : await LongLine.open(portIn(giving.address), delay / 2);
    const address = line === undefined ? giving.address : giving.address.replace(portPattern, `$1${line.port}`);
    const connect = median(await taking.ask("connect", { address, times: dials }));
    const pings = await taking.ask("ping", { address, times: echoes });
    const ping = median(pings.slice(pings.length / 4));
    latencies.set(kind, [...(latencies.get(kind) ?? []), { connect, ping }]);
    for (const [at, [work, byKind]] of [...samples].entries()) {
      const sample = await measure(giving, taking, work, 10 * round + at).catch((error: Error) => {
        console.error(`${kind.name}, ${work.name}: ${error.message}`);
        return noSample;
      });
      byKind.set(kind.name, [...(byKind.get(kind.name) ?? []), sample]);
    }
  } finally {
    await Promise.all(peers.map((peer) => peer.stop()));
    await rm(folder, { recursive: true, force: true });
  }
}

/** The port in a multiaddr, or a port alone. */
const portPattern = /^(.*\/tcp\/|)\d+/;
const portIn = (address: string): number => Number(/(\d+)$/.exec(portPattern.exec(address)?.[0] ?? "")?.[1]);

async function measure(giving: Peer, taking: Peer, { bytes, chunk, amount }: Work, seed: number): Promise<Sample> {
  const name = await giving.ask("add", { size: bytes, chunk, seed });
  const pids = [giving.pid, taking.pid] as const;
  for (const pid of pids) forgetPeak(pid);
  const before = pids.map(cpuSeconds);
  const began = performance.now();
  await taking.ask("read", { name, size: bytes });
  const seconds = (performance.now() - began) / 1000;
  const cpu = pids.map((pid, at) => cpuSeconds(pid) - (before[at] as number)) as [number, number];
  return { speed: amount / seconds, cpu, peak: pids.map(peakBytes) as [number, number] };
}

function printWorks(section: ReportSection, samples: Samples): void {
  const table = new Comparison<Sample>(section, [
    { title: "rate", isCompared: true },
    { title: "CPU of the sender", isCompared: true },
    { title: "CPU of the receiver", isCompared: true },
    { title: "peak memory (MiB): sender" },
    { title: "receiver" },
  ]);
  for (const [{ name, aim, unit }, byKind] of samples) {
    table.add(
      aim === undefined ? name : `${name} (aim: ${aim})`,
      [
        { digits: 0, unit, better: "more", of: ({ speed }) => speed },
        { digits: 2, unit: "s", of: ({ cpu }) => cpu[0] },
        { digits: 2, unit: "s", of: ({ cpu }) => cpu[1] },
        { digits: 0, of: ({ peak }) => peak[0] / mebibyte },
        { digits: 0, of: ({ peak }) => peak[1] / mebibyte },
      ],
      byKind,
    );
  }
}

function printLatencies(section: ReportSection, latencies: ReadonlyMap<PeerKind, readonly Latency[]>): void {
  section.head(["", "connect (ms)", "ping (ms)"]);
  for (const [{ name }, own] of latencies) {
    const cell = (of: (latency: Latency) => number) => spread(own.map(of), 2);
    section.row([name, cell(({ connect }) => connect), cell(({ ping }) => ping)]);
  }
}

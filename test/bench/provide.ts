import { announceKeys } from "#node/network/kad/sweep/announce.ts";
import { kadIdOf, Lookups } from "#node/network/kad/sweep/keyspace.ts";
import { sweepKey } from "#node/network/kad/sweep/keystore.ts";
import { SweepMetrics } from "#node/network/kad/sweep/sweep_metrics.ts";
import { Sweeper } from "#node/network/kad/sweep/sweeper.ts";
import { memoryMetadata } from "#node/storage/metadata/memory.ts";
import { SimulatedDht, type SimulatedPeer, type Traffic } from "#test/support/network/simulated_dht.ts";
import { VirtualClock } from "#test/support/virtual_clock.ts";
import type { BenchReport } from "./report.ts";

/** Number of keys that are announced one by one. The result is scaled to all keys. */
const SAMPLE = 2000;
/** Workers, as in the node when it announces block by block. */
const ONE_BY_ONE_WORKERS = 8;
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

export interface Announced {
  readonly traffic: Readonly<Traffic>;
  /** Milliseconds of the simulated time, and of this process' CPU. */
  readonly time: number;
  readonly cpu: number;
}

const keyOf = (number: number): Uint8Array =>
  Buffer.concat([Buffer.from([0x12, 32]), kadIdOf(Buffer.from(`key ${number}`))]);

async function measure(
  peers: number,
  work: (dht: SimulatedDht, clock: VirtualClock) => Promise<unknown>,
): Promise<Announced> {
  const clock = new VirtualClock();
  const dht = new SimulatedDht({ peers, clock });
  const began = clock.now();
  const cpu = process.cpuUsage();
  let end: number | undefined;
  const working = work(dht, clock).then(() => {
    end = clock.now();
  });
  while (end === undefined) await Promise.race([clock.pass(MINUTE_MS), working]);
  const spent = process.cpuUsage(cpu);
  return { traffic: dht.traffic, time: end - began, cpu: (spent.user + spent.system) / 1000 };
}

/** Announces all keys once, by region, with sixteen workers. */
export const byRegion = (peers: number, keys: number): Promise<Announced> =>
  measure(peers, async (dht, clock) => {
    const metadata = memoryMetadata();
    const sweeper = new Sweeper<SimulatedPeer>({
      metadata,
      hostMetadata: metadata,
      clock,
      log: { write: (_system, _level, text) => console.error(text) },
      settings: () => ({
        interval: 22 * HOUR_MS,
        resumes: true,
        workers: { max: 16, dedicated: { periodic: 2, burst: 0 } },
        connections: 20,
        batchSize: 16_384,
        offlineAfter: HOUR_MS,
        sendTimeout: 10_000,
      }),
      network: () => dht,
      source: () => ({
        name: "all",
        async *keys() {
          for (let number = 0; number < keys; number += 1) yield keyOf(number);
        },
      }),
    });
    await sweeper.run();
    if (sweeper.last.provided < keys) throw new Error(`${sweeper.last.provided} of ${keys} keys were announced`);
  });

/** Announces a number of keys with one lookup each, eight at a time. */
export const oneByOne = (peers: number, keys: number): Promise<Announced> =>
  measure(peers, async (dht, clock) => {
    const metrics = new SweepMetrics(() => clock.now());
    const { signal } = new AbortController();
    const announcing = {
      network: dht,
      lookups: new Lookups(),
      replication: 20,
      connections: 20,
      metrics,
      signal,
      manyPeers: true,
    };
    const left = Array.from({ length: keys }, (_, number) => number).values();
    const worker = async () => {
      for (const number of left) await announceKeys([sweepKey(keyOf(number))], announcing);
    };
    await Promise.all(Array.from({ length: ONE_BY_ONE_WORKERS }, worker));
  });

/**
 * Compares announcing by region with announcing one by one, in a simulated DHT on a virtual clock:
 * a round trip takes 100 ms, opening a connection takes 300 ms, 900 connections can be open, and a
 * stream transfers one megabyte a second. Only a sample is announced one by one, and its result is
 * scaled.
 */
export async function benchProvide({ blocks = 1_000_000, peers = 10_000 }, report: BenchReport): Promise<void> {
  const swept = await byRegion(peers, blocks);
  const sample = Math.min(SAMPLE, blocks);
  const sampled = await oneByOne(peers, sample);
  const scale = blocks / sample;
  const count = (value: number) => Math.round(value).toLocaleString("en-US");
  const row = (name: string, of: (each: Announced) => number, shown: (value: number) => string) => {
    const one = of(swept);
    const other = of(sampled) * scale;
    section.row([name, shown(one), shown(other), (other / one).toFixed(1)]);
  };
  const how = `${count(blocks)} keys, ${count(peers)} peers; one by one ${count(sample)} keys, times ${count(scale)}`;
  const section = report.section("provide", { how });
  section.head(["", "by region", "one by one", "times"]);
  row("lookups", ({ traffic }) => traffic.lookups, count);
  row("requests for closer peers", ({ traffic }) => traffic.queries, count);
  row("connections opened", ({ traffic }) => traffic.connections, count);
  row("provider records", ({ traffic }) => traffic.records, count);
  row(
    "GB",
    ({ traffic }) => traffic.bytes / 1e9,
    (value) => value.toFixed(1),
  );
  row(
    "minutes, with all workers",
    ({ time }) => time / MINUTE_MS,
    (value) => value.toFixed(1),
  );
  section.line();
  section.line(`By region it takes ${(swept.cpu / 1000).toFixed(1)} s of CPU time, the simulation included.`);
}

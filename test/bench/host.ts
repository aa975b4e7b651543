import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { makeSelfSigned } from "#core/tls/self_signed.ts";
import { Package } from "./host/packaged.ts";
import {
  type Asker,
  apart,
  type HostServer,
  type HostWork,
  LARGE_FILE,
  ofStart,
  SMALL_FILE,
  type TurnMeasurements,
  works,
} from "./host/works.ts";
import { Subject } from "./measure.ts";
import { type BenchReport, Comparison, versionsOf } from "./report.ts";

/** Turns of each server within a round, for works that do not start new processes. */
const TURNS = 4;

export interface HostBenchOptions {
  readonly rounds?: number;
  /** Regular expression: only works with a matching name. */
  readonly only?: string;
}

/** Compares the host with other servers. */
export const benchHost = (options: HostBenchOptions, report: BenchReport): Promise<void> =>
  bench("host", works, options, report);

/** Compares modules that run in a sandbox, in a worker thread and in the host's thread. */
export const benchIsolated = (options: HostBenchOptions, report: BenchReport): Promise<void> =>
  bench("isolated", apart, options, report);

/**
 * The servers take short turns, so that a change in the machine's speed affects all of them. The
 * tables show medians over the rounds; ratios are taken within each round.
 */
async function bench(
  name: "host" | "isolated",
  all: readonly HostWork[],
  { rounds = 7, only = "" }: HostBenchOptions,
  report: BenchReport,
): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "modhost-bench-host-"));
  try {
    const env = await furnish(folder);
    const versions = versionsOf(["koa", "@koa/router", "koa-static", "fastify", "ws"]);
    const section = report.section(name, { how: `${rounds} rounds`, versions, isWhole: only === "" });
    const table = new Comparison<TurnMeasurements>(section, [
      { title: "CPU time, or what it takes", isCompared: true },
      { title: "rate, or what it takes", isCompared: true },
    ]);
    for (const work of all.filter((each) => new RegExp(only).test(each.name))) {
      const { name, aim, metrics } = work;
      const [cost, other] = metrics;
      table.add(
        aim === undefined ? name : `${name} (aim: ${aim})`,
        [
          { ...cost, of: ([first]) => first },
          { ...other, of: ([, second]) => second },
        ],
        oursFirst(await play(work, env, rounds)),
      );
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Makes the files to serve, and a certificate. */
async function furnish(folder: string): Promise<Record<string, string>> {
  for (const { name, bytes } of [SMALL_FILE, LARGE_FILE])
    await writeFile(join(folder, name), Buffer.alloc(bytes, "modhost "));
  const { certificate, key } = await makeSelfSigned(["localhost"]);
  await writeFile(join(folder, "certificate.pem"), certificate);
  await writeFile(join(folder, "key.pem"), key, { mode: 0o600 });
  return { BENCH_FOLDER: folder, BENCH_CERTIFICATE: folder };
}

type Samples = ReadonlyMap<HostServer, readonly TurnMeasurements[]>;

async function play(work: HostWork, env: Readonly<Record<string, string>>, rounds: number): Promise<Samples> {
  const start = ({ name, file, path = "/", env: own }: HostServer) =>
    Subject.start(name, file, path, { ...env, ...own });
  return work.isFresh === true ? playFresh(work, start, rounds) : playInTurns(work, start, rounds);
}

type Start = (server: HostServer) => Promise<Subject>;

async function playFresh(work: HostWork, start: Start, rounds: number): Promise<Samples> {
  await using program = work.servers.some(isPackage) ? await Package.install() : undefined;
  /** Measures one turn. The package is only measured for its start. */
  const turn = async (server: HostServer): Promise<TurnMeasurements> => {
    if (program !== undefined && isPackage(server)) {
      const started = await program.start(Number(server.env?.BENCH_ROUTES), { node: server.env?.NODE === "on" });
      await started.stop();
      return ofStart(started);
    }
    const subject = await start(server);
    return await work.measure(subject, undefined, work.count).finally(() => subject.stop());
  };
  const samples = new Map<HostServer, TurnMeasurements[]>(work.servers.map((server) => [server, []]));
  for (let round = 0; round < rounds; round += 1) {
    for (const [server, own] of samples) own.push(await turn(server));
  }
  return samples;
}

const isPackage = ({ file }: HostServer): boolean => file === "";

async function playInTurns(work: HostWork, start: Start, rounds: number): Promise<Samples> {
  const players: {
    readonly server: HostServer;
    readonly subject: Subject;
    asker?: Asker;
    readonly samples: TurnMeasurements[];
  }[] = [];
  try {
    for (const server of work.servers) players.push({ server, subject: await start(server), samples: [] });
    for (const player of players) {
      const asker = await work.open?.(player.subject);
      if (asker !== undefined) player.asker = asker;
      for (let at = 0; at < work.warmUp; at += 1) await asker?.turn(work.count);
    }
    for (let round = 0; round < rounds; round += 1) {
      const sums = new Map(players.map((player) => [player, [] as TurnMeasurements[]]));
      for (let at = 0; at < TURNS; at += 1) {
        // Each server is first in some rounds.
        const from = (round + at) % players.length;
        for (const player of [...players.slice(from), ...players.slice(0, from)]) {
          sums.get(player)?.push(await work.measure(player.subject, player.asker, work.count));
        }
      }
      for (const [{ samples }, turns] of sums) samples.push([mean(turns, 0), mean(turns, 1)]);
    }
  } finally {
    for (const { asker } of players) asker?.close();
    await Promise.all(players.map(({ subject }) => subject.stop()));
  }
  return new Map(players.map(({ server, samples }) => [server, samples]));
}

const mean = (turns: readonly TurnMeasurements[], at: 0 | 1): number =>
  turns.reduce((sum, measured) => sum + measured[at], 0) / turns.length;

/** Returns the samples by the name of their server; ours is the first. */
function oursFirst(samples: Samples): ReadonlyMap<string, readonly TurnMeasurements[]> {
  const all = [...samples].map(([{ name }, own]) => [name, own] as const);
  const ours = all.findLastIndex(([name]) => name.startsWith("modhost"));
  return new Map([...all.splice(ours, 1), ...all]);
}

import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { makeSelfSigned } from "#core/tls/self_signed.ts";
import { Package } from "./host/packaged.ts";
import {
  type Asker,
  type Figures,
  LARGE_FILE,
  ofStart,
  type Server,
  SMALL_FILE,
  type Work,
  works,
} from "./host/works.ts";
import { Subject } from "./measure.ts";
import { Comparison, type Report, versionsOf } from "./report.ts";

/** Times that each server has its turn within a round, of works whose processes stay. */
const TURNS = 4;

export interface HostBenchOptions {
  readonly rounds?: number;
  /** Regular expression: only works whose name it matches. */
  readonly only?: string;
}

/**
 * The host beside its peers, in short turns, so that a drifting machine touches all alike. Figures
 * are medians over the rounds; ratios are taken within each round.
 */
export async function benchHost({ rounds = 7, only = "" }: HostBenchOptions, report: Report): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "modhost-bench-host-"));
  try {
    const env = await furnish(folder);
    const beside = versionsOf(["koa", "@koa/router", "koa-static", "fastify", "ws"]);
    const section = report.section("host", { how: `${rounds} rounds`, beside, isWhole: only === "" });
    const table = new Comparison<Figures>(section, [
      { title: "CPU time, or what it takes", isCompared: true },
      { title: "rate, or what it takes", isCompared: true },
    ]);
    for (const work of works.filter(({ name }) => new RegExp(only).test(name))) {
      const { name, aim, figures } = work;
      const [cost, other] = figures;
      table.add(
        aim === undefined ? name : `${name} (aim: ${aim})`,
        [
          { ...cost, of: ([figure]) => figure },
          { ...other, of: ([, figure]) => figure },
        ],
        oursFirst(await play(work, env, rounds)),
      );
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Files to serve and a certificate for all. */
async function furnish(folder: string): Promise<Record<string, string>> {
  for (const { name, bytes } of [SMALL_FILE, LARGE_FILE])
    await writeFile(join(folder, name), Buffer.alloc(bytes, "modhost "));
  const { certificate, key } = await makeSelfSigned(["localhost"]);
  await writeFile(join(folder, "certificate.pem"), certificate);
  await writeFile(join(folder, "key.pem"), key, { mode: 0o600 });
  return { BENCH_FOLDER: folder, BENCH_CERTIFICATE: folder };
}

type Samples = ReadonlyMap<Server, readonly Figures[]>;

async function play(work: Work, env: Readonly<Record<string, string>>, rounds: number): Promise<Samples> {
  const start = ({ name, file, path = "/", env: own }: Server) => Subject.start(name, file, path, { ...env, ...own });
  return work.isFresh === true ? playFresh(work, start, rounds) : playInTurns(work, start, rounds);
}

type Start = (server: Server) => Promise<Subject>;

async function playFresh(work: Work, start: Start, rounds: number): Promise<Samples> {
  await using program = work.servers.some(isPackage) ? await Package.install() : undefined;
  /** One turn; of the package it is known how it starts, and nothing else. */
  const turn = async (server: Server): Promise<Figures> => {
    if (program !== undefined && isPackage(server)) {
      const started = await program.start(Number(server.env?.BENCH_ROUTES), { node: server.env?.NODE === "on" });
      await started.stop();
      return ofStart(started);
    }
    const subject = await start(server);
    return await work.measure(subject, undefined, work.count).finally(() => subject.stop());
  };
  const samples = new Map<Server, Figures[]>(work.servers.map((server) => [server, []]));
  for (let round = 0; round < rounds; round += 1) {
    for (const [server, own] of samples) own.push(await turn(server));
  }
  return samples;
}

const isPackage = ({ file }: Server): boolean => file === "";

async function playInTurns(work: Work, start: Start, rounds: number): Promise<Samples> {
  const players: { readonly server: Server; readonly subject: Subject; asker?: Asker; readonly samples: Figures[] }[] =
    [];
  try {
    for (const server of work.servers) players.push({ server, subject: await start(server), samples: [] });
    for (const player of players) {
      const asker = await work.open?.(player.subject);
      if (asker !== undefined) player.asker = asker;
      for (let at = 0; at < work.warmUp; at += 1) await asker?.turn(work.count);
    }
    for (let round = 0; round < rounds; round += 1) {
      const sums = new Map(players.map((player) => [player, [] as Figures[]]));
      for (let at = 0; at < TURNS; at += 1) {
        // Nobody is always the first.
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

const mean = (turns: readonly Figures[], at: 0 | 1): number =>
  turns.reduce((sum, figures) => sum + figures[at], 0) / turns.length;

/** By name. */
function oursFirst(samples: Samples): ReadonlyMap<string, readonly Figures[]> {
  const all = [...samples].map(([{ name }, own]) => [name, own] as const);
  const ours = all.findLastIndex(([name]) => name.startsWith("modhost"));
  return new Map([...all.splice(ours, 1), ...all]);
}

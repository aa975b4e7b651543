import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { serverFlags } from "#test/support/launchers.ts";
import { type BenchReport, type ReportSection, spread } from "./report.ts";
import { LimitedLine } from "./sources/line.ts";

const mebibyte = 2 ** 20;
/** Bytes per second of the lines to a peer and a gateway, and of the line to a slow gateway. */
const RATE = 8 * mebibyte;
const SLOW_RATE = mebibyte;

export interface SourcesBenchOptions {
  readonly rounds?: number;
  /** MiB of the file. */
  readonly size?: number;
}

export interface Giver {
  readonly cid: string;
  readonly id: string;
  readonly peerPort: number;
  readonly gatewayPort: number;
}

export interface ToTake {
  readonly cid: string;
  readonly id: string;
  /** Multiaddress of the peer, if there is one. */
  readonly peer?: string;
  readonly gateways: readonly string[];
}

export interface Taken {
  readonly bytes: number;
  readonly seconds: number;
  readonly cpu: number;
  readonly overHttp: number;
  readonly duplicates: number;
  readonly sources: readonly (readonly [name: string, bytes: number])[];
}

type Kind = "bitswap" | "gateway" | "both" | "all three";

/**
 * Reads a file on a new node from a peer over bitswap, from a gateway over HTTP/2, from both, and
 * from both and a slow gateway: each over a line of its own with a limited rate. Sources take
 * turns; ratios are taken within each round.
 */
export async function benchSources(
  { rounds = 3, size = 256 }: SourcesBenchOptions,
  report: BenchReport,
): Promise<void> {
  const rates = `lines of ${RATE / mebibyte} MiB/s, the slow one of ${SLOW_RATE / mebibyte}`;
  const section = report.section("sources", { how: `a file of ${size} MiB, ${rates}, ${rounds} rounds` });
  const folder = await mkdtemp(join(tmpdir(), "modhost-bench-"));
  const lines: LimitedLine[] = [];
  const giving = start("giver", { BENCH_FOLDER: join(folder, "giver"), BENCH_SIZE: String(size * mebibyte) });
  try {
    const { cid, id, peerPort, gatewayPort } = (await resultOf(giving)) as Giver;
    for (const [port, rate] of [
      [peerPort, RATE],
      [gatewayPort, RATE],
      [gatewayPort, SLOW_RATE],
    ] as const)
      lines.push(await LimitedLine.open(port, rate));
    const [line, gatewayLine, slowLine] = lines as [LimitedLine, LimitedLine, LimitedLine];
    const peer = `/ip4/127.0.0.1/tcp/${line.port}`;
    const gateway = `/ip4/127.0.0.1/tcp/${gatewayLine.port}/tls/http`;
    const slow = `/ip4/127.0.0.1/tcp/${slowLine.port}/tls/http`;
    const works: Readonly<Record<Kind, ToTake>> = {
      bitswap: { cid, id, peer, gateways: [] },
      gateway: { cid, id, gateways: [gateway] },
      both: { cid, id, peer, gateways: [gateway] },
      "all three": { cid, id, peer, gateways: [slow, gateway] },
    };
    const taken = new Map<Kind, Taken[]>();
    for (let round = 1; round <= rounds; round += 1) {
      for (const [kind, work] of Object.entries(works) as [Kind, ToTake][]) {
        const sample = await take(join(folder, `${kind}-${round}`), work);
        if (sample.bytes !== size * mebibyte) throw new Error(`${kind}: ${sample.bytes} bytes came`);
        taken.set(kind, [...(taken.get(kind) ?? []), sample]);
      }
    }
    print(section, taken, size);
  } finally {
    for (const line of lines) line.close();
    if (giving.connected) giving.disconnect();
    await rm(folder, { recursive: true, force: true });
  }
}

async function take(folder: string, work: ToTake): Promise<Taken> {
  const taker = start("taker", { BENCH_FOLDER: folder, BENCH_TAKE: JSON.stringify(work) });
  try {
    return (await resultOf(taker)) as Taken;
  } finally {
    taker.kill();
    await rm(folder, { recursive: true, force: true });
  }
}

function start(program: "giver" | "taker", env: Readonly<Record<string, string>>): ChildProcess {
  return fork(fileURLToPath(new URL(`sources/${program}.ts`, import.meta.url)), [], {
    execArgv: [...serverFlags],
    stdio: ["ignore", "ignore", "inherit", "ipc"],
    env: { ...process.env, ...env },
  });
}

async function resultOf(child: ChildProcess): Promise<unknown> {
  const ended = once(child, "exit").then(([code]) => Promise.reject(new Error(`the process ended with ${code}`)));
  const [result] = await Promise.race([once(child, "message"), ended]);
  return result;
}

function print(section: ReportSection, taken: ReadonlyMap<Kind, readonly Taken[]>, size: number): void {
  const alone = (["bitswap", "gateway"] as const).map((kind) => taken.get(kind) ?? []);
  section.head(["from", "MiB/s", "x the best alone", "over HTTP (%)", "CPU (s)", "sent twice (MiB)"]);
  for (const [kind, samples] of taken) {
    const cell = (digits: number, of: (sample: Taken) => number) => spread(samples.map(of), digits);
    const ratios = samples.map(({ seconds }, round) => {
      return Math.min(...alone.map((each) => each[round]?.seconds ?? Number.NaN)) / seconds;
    });
    const speed = cell(1, ({ seconds }) => size / seconds);
    const share = cell(0, ({ overHttp, bytes }) => (100 * overHttp) / bytes);
    const twice = cell(1, ({ duplicates }) => duplicates / mebibyte);
    section.row([kind, speed, spread(ratios, 2), share, cell(2, ({ cpu }) => cpu), twice]);
  }
}

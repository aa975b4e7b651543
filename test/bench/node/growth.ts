/** Time per entry of what goes over many, as they become more: it has to stay what it is. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { exchange } from "./client.ts";
import { files } from "./content.ts";
import { type Installed, type Server, startServers } from "./servers.ts";
import { cpuSeconds } from "./usage.ts";
import { lastHash, type Scale } from "./works.ts";

interface Growing {
  readonly name: string;
  /** Entries for each one of the scale. */
  readonly times: number;
  /** It can be done again and again. */
  readonly repeats: boolean;
  /** Makes so many entries; gives what is timed. */
  prepare(url: string, count: number): Promise<() => Promise<unknown>>;
}

const api = "/api/v0";
const fileBytes = 24;
/** Always the same: more files are the fewer and others. */
const seed = 7000;
/** Of the largest. */
const steps = [0.01, 0.1, 1] as const;
/** js-ipfs takes minutes for more. */
const mostOfOthers = 1000;

/** An answer with at least so many bytes for each entry. */
async function listed(url: string, path: string, count: number, each: number): Promise<void> {
  const { bytes } = await exchange(url, `${api}/${path}`);
  if (bytes < count * each) throw new Error(`${path} gave ${bytes} bytes for ${count} entries`);
}

const growing: readonly Growing[] = [
  {
    name: "pin/ls",
    times: 1,
    repeats: true,
    async prepare(url, count) {
      await exchange(url, `${api}/add?progress=false`, files(count, fileBytes, seed));
      return () => listed(url, "pin/ls?type=recursive", count, 50);
    },
  },
  {
    name: "files/ls",
    times: 1,
    repeats: true,
    async prepare(url, count) {
      const upload = files(count, fileBytes, seed, "tree");
      const { tail } = await exchange(url, `${api}/add?progress=false&pin=false`, upload);
      await exchange(url, `${api}/files/cp?arg=/ipfs/${lastHash(tail)}&arg=/tree-${count}`);
      return () => listed(url, `files/ls?arg=/tree-${count}&long=true`, count, 80);
    },
  },
  {
    name: "repo/gc",
    times: 2,
    repeats: false,
    async prepare(url, count) {
      await exchange(url, `${api}/add?progress=false&pin=false`, files(count, fileBytes, seed));
      return () => listed(url, "repo/gc", count, 50);
    },
  },
];

interface Figure {
  readonly count: number;
  /** Seconds of one call. */
  readonly seconds: number;
  readonly cpu: number;
}

/** Prints a table for each; `isChosen` leaves some out. */
export async function benchGrowth(
  program: Installed,
  { entries }: Scale,
  isChosen: (work: { readonly name: string }) => boolean,
): Promise<void> {
  for (const work of growing.filter(isChosen)) {
    const folder = await mkdtemp(join(tmpdir(), "modhost-bench-"));
    const servers = await startServers(program, folder);
    try {
      console.log(`\n| ${work.name} | entries | µs per entry (x the first) | CPU µs per entry (x the first) |`);
      console.log("|---|---|---|---|");
      for (const server of servers) if (!server.isLimit) await grow(server, work, entries);
    } finally {
      await Promise.all(servers.map((server) => server.stop()));
      await rm(folder, { recursive: true, force: true });
    }
  }
}

async function grow(server: Server, work: Growing, entries: number): Promise<void> {
  let first: Figure | undefined;
  for (const step of steps) {
    const count = entries * step * work.times;
    if (server.name === "js-ipfs" && count > mostOfOthers) return;
    const figure = await measure(server, work, count, work.repeats ? 1 / step : 1);
    first ??= figure;
    const cell = (of: (figure: Figure) => number) => {
      const each = of(figure) / figure.count;
      return `${(each * 1e6).toFixed(1)} (${((each * (first as Figure).count) / of(first as Figure)).toFixed(2)})`;
    };
    console.log(`| ${server.name} | ${count} | ${cell(({ seconds }) => seconds)} | ${cell(({ cpu }) => cpu)} |`);
  }
}

/** The calls for few entries are made so often that they last as long as those for many. */
async function measure({ url, pid }: Server, work: Growing, count: number, calls: number): Promise<Figure> {
  const run = await work.prepare(url, count);
  const cpu = cpuSeconds(pid);
  const began = performance.now();
  for (let call = 0; call < calls; call += 1) await run();
  const seconds = (performance.now() - began) / 1000;
  return { count, seconds: seconds / calls, cpu: (cpuSeconds(pid) - cpu) / calls };
}

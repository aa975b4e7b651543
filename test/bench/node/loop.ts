/**
 * Measures how long small requests wait while large calls run. For modhost it measures the hello
 * route, from outside and within the process. For other nodes it measures `version`, which is their
 * smallest call.
 */
import { once } from "node:events";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { Worker } from "node:worker_threads";
import { type BenchReport, versionsOfPeers } from "#test/bench/report.ts";
import type { LoopDelay } from "#test/bench/servers/loop/mod_loop.ts";
import { RpcServer } from "#test/support/rpc_server.ts";
import { exchange } from "./client.ts";
import { file, files } from "./content.ts";
import type { RepeatedRequest } from "./hello_worker.ts";
import { type Installed, type NodeServer, startPeers } from "./servers.ts";
import { lastHash, type NodeScale } from "./works.ts";

interface LoopWork {
  readonly name: string;
  /** Prepares the large call. Resolves to the function that runs it. */
  prepare(url: string): Promise<() => Promise<unknown>>;
  /**
   * Which other nodes are measured: all, those with blocks and pins, or none, because Kubo does not
   * finish adding so many entries.
   */
  readonly peers: "all" | "nodes" | "none";
}

const api = "/api/v0";
const plugins = fileURLToPath(new URL("../servers/loop", import.meta.url));
const SMALL_BYTES = 24;

const counted = (count: number): string => count.toLocaleString("en");

function worksOf({ size, entries: few }: NodeScale): readonly LoopWork[] {
  const entries = few * 10;
  const added = async (url: string, count: number, seed: number, folder = "") => {
    const uploaded = await exchange(
      url,
      `${api}/add?progress=false&pin=false`,
      files(count, SMALL_BYTES, seed, folder),
    );
    return lastHash(uploaded.tail);
  };
  let root = "";
  const list = (name: string, path: (cid: string) => string): LoopWork => ({
    name: `loop: ${name} of ${counted(entries)} entries, sharded`,
    peers: "none",
    async prepare(url) {
      await exchange(url, `${api}/config?arg=Experimental.ShardingEnabled&arg=true&bool=true`);
      root = await added(url, entries, 1, "tree");
      return () => exchange(url, `${api}/${path(root)}`);
    },
  });
  return [
    { name: "loop: nothing", peers: "all", prepare: async () => () => sleep(2000) },
    {
      name: `loop: add of ${size / 2 ** 20} MiB`,
      peers: "all",
      prepare: async (url) => () => exchange(url, `${api}/add?progress=false`, file(size, 1)),
    },
    {
      name: `loop: add of ${counted(few)} files`,
      peers: "all",
      prepare: async (url) => () => added(url, few, 2, "many"),
    },
    {
      name: `loop: repo/ls of ${counted(few)} blocks`,
      peers: "nodes",
      async prepare(url) {
        await added(url, few, 3);
        return () => exchange(url, `${api}/refs/local`);
      },
    },
    {
      name: `loop: pin/ls of ${counted(few)} pins`,
      peers: "nodes",
      async prepare(url) {
        await exchange(url, `${api}/add?progress=false`, files(few, SMALL_BYTES, 4));
        return () => exchange(url, `${api}/pin/ls?type=recursive`);
      },
    },
    list("ls", (cid) => `ls?arg=${cid}`),
    list("ls without sizes and types", (cid) => `ls?arg=${cid}&size=false&resolve-type=false`),
    list("ls, streamed", (cid) => `ls?arg=${cid}&stream=true`),
    list("refs", (cid) => `refs?arg=${cid}&recursive=true`),
    {
      name: `loop: repo/gc of ${counted(few * 2)} blocks and more`,
      peers: "nodes",
      async prepare(url) {
        await added(url, few * 2, 5);
        return () => exchange(url, `${api}/repo/gc`);
      },
    },
  ];
}

/** Makes one table. `isChosen` may leave out works, by names that begin with `loop: `. */
export async function benchLoop(
  { launcher }: Installed,
  scale: NodeScale,
  isChosen: (work: { readonly name: string }) => boolean,
  report: BenchReport,
): Promise<void> {
  const all = worksOf(scale);
  const works = all.filter(isChosen);
  if (works.length === 0) return;
  const folder = await mkdtemp(join(tmpdir(), "modhost-bench-"));
  const env = {
    MODHOST_NODE_OFFLINE: "true",
    MODHOST_MODULES_ENABLED: "http,http_errors,http_api,loop",
    MODHOST_PLUGIN_PATHS: plugins,
  };
  const ours = join(folder, "modhost");
  await mkdir(ours);
  const server = await RpcServer.start({ folder: ours, launcher, env });
  let peers: readonly NodeServer[] = [];
  const how = `add of ${scale.size / 2 ** 20} MiB, ${counted(scale.entries * 10)} entries`;
  const section = report.section("node, loop", {
    how,
    versions: versionsOfPeers(),
    isWhole: works.length === all.length,
  });
  section.head([
    "during",
    "",
    "s",
    "hello (ms): p50, p99, longest",
    "loop blocked (ms of CPU): p99, longest",
    "longest wait (ms)",
  ]);
  try {
    peers = await startPeers(folder);
    for (const work of works) {
      const run = await work.prepare(server.url);
      await loopDelay(server.url);
      const cells = await measureDuring(run, { url: `${server.url}/loop/hello`, method: "GET" });
      const { p99, max, wait } = await loopDelay(server.url);
      const name = work.name.replace("loop: ", "");
      section.row([name, "modhost", ...cells, `${p99.toFixed(1)}, ${max.toFixed(0)}`, wait.toFixed(0)]);
      for (const { url, ...peer } of peers) {
        if (work.peers === "none" || (work.peers === "nodes" && peer.isLimit)) continue;
        const polled = { url: `${url}${api}/version`, method: "POST" } as const;
        section.row(["", peer.name, ...(await measureDuring(await work.prepare(url), polled)), "", ""]);
      }
    }
  } finally {
    await Promise.all([server, ...peers].map((each) => each.stop()));
    await rm(folder, { recursive: true, force: true });
  }
}

/** Resolves to the duration of the call, and the waits of small requests meanwhile. */
async function measureDuring(
  run: () => Promise<unknown>,
  polled: RepeatedRequest,
): Promise<readonly [seconds: string, waits: string]> {
  const began = performance.now();
  const waits = await waitsDuring(run, polled);
  const seconds = (performance.now() - began) / 1000;
  const of = (share: number) => (waits[Math.floor(waits.length * share)] ?? Number.NaN).toFixed(1);
  return [seconds.toFixed(1), `${of(0.5)}, ${of(0.99)}, ${waits.at(-1)?.toFixed(0)}`];
}

const loopDelay = async (url: string): Promise<LoopDelay> => (await fetch(`${url}/loop`)).json() as Promise<LoopDelay>;

/** Resolves to the sorted times of all responses in milliseconds. */
async function waitsDuring(work: () => Promise<unknown>, polled: RepeatedRequest): Promise<readonly number[]> {
  const worker = new Worker(new URL("hello_worker.ts", import.meta.url), { workerData: polled });
  const reported = once(worker, "message");
  reported.catch(() => {});
  try {
    await work();
    worker.postMessage("over");
    const [waits] = (await reported) as [number[]];
    return waits.sort((one, other) => one - other);
  } finally {
    await worker.terminate();
  }
}

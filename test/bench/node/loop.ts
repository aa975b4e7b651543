/** How long others wait for the event loop while large calls run: the hello route beside them, from outside and within. */
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { Worker } from "node:worker_threads";
import type { Report } from "#test/bench/report.ts";
import type { Held } from "#test/bench/servers/loop/mod_loop.ts";
import { RpcServer } from "#test/support/rpc_server.ts";
import { exchange } from "./client.ts";
import { file, files } from "./content.ts";
import type { Installed } from "./servers.ts";
import { lastHash, type Scale } from "./works.ts";

interface LoopWork {
  readonly name: string;
  /** Gives what is run beside hello. */
  prepare(url: string): Promise<() => Promise<unknown>>;
}

const api = "/api/v0";
const plugins = fileURLToPath(new URL("../servers/loop", import.meta.url));
const SMALL_BYTES = 24;

const counted = (count: number): string => count.toLocaleString("en");

function worksOf({ size, entries: few }: Scale): readonly LoopWork[] {
  const entries = few * 10;
  const added = async (url: string, count: number, seed: number, folder = "") => {
    const answer = await exchange(url, `${api}/add?progress=false&pin=false`, files(count, SMALL_BYTES, seed, folder));
    return lastHash(answer.tail);
  };
  let root = "";
  const list = (name: string, path: (cid: string) => string): LoopWork => ({
    name: `loop: ${name} of ${counted(entries)} entries, sharded`,
    async prepare(url) {
      await exchange(url, `${api}/config?arg=Experimental.ShardingEnabled&arg=true&bool=true`);
      root = await added(url, entries, 1, "tree");
      return () => exchange(url, `${api}/${path(root)}`);
    },
  });
  return [
    { name: "loop: nothing", prepare: async () => () => sleep(2000) },
    {
      name: `loop: add of ${size / 2 ** 20} MiB`,
      prepare: async (url) => () => exchange(url, `${api}/add?progress=false`, file(size, 1)),
    },
    {
      name: `loop: add of ${counted(few)} files`,
      prepare: async (url) => () => added(url, few, 2, "many"),
    },
    {
      name: `loop: repo/ls of ${counted(few)} blocks`,
      async prepare(url) {
        await added(url, few, 3);
        return () => exchange(url, `${api}/refs/local`);
      },
    },
    {
      name: `loop: pin/ls of ${counted(few)} pins`,
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
      async prepare(url) {
        await added(url, few * 2, 5);
        return () => exchange(url, `${api}/repo/gc`);
      },
    },
  ];
}

/** Makes one table; `isChosen` leaves some out, by names that begin with `loop: `. */
export async function benchLoop(
  { launcher }: Installed,
  scale: Scale,
  isChosen: (work: { readonly name: string }) => boolean,
  report: Report,
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
  const server = await RpcServer.start({ folder, launcher, env });
  const how = `add of ${scale.size / 2 ** 20} MiB, ${counted(scale.entries * 10)} entries`;
  const section = report.section("node, loop", { how, isWhole: works.length === all.length });
  section.head([
    "beside it",
    "s",
    "hello (ms): p50, p99, longest",
    "loop held (ms of CPU): p99, longest",
    "longest wait (ms)",
  ]);
  try {
    for (const { name, prepare } of works) {
      const run = await prepare(server.url);
      await heldIn(server.url);
      const began = performance.now();
      const hello = await hellosDuring(`${server.url}/loop/hello`, run);
      const seconds = (performance.now() - began) / 1000;
      const held = await heldIn(server.url);
      const of = (share: number) => (hello[Math.floor(hello.length * share)] ?? Number.NaN).toFixed(1);
      const told = [
        `${of(0.5)}, ${of(0.99)}, ${hello.at(-1)?.toFixed(0)}`,
        `${held.p99.toFixed(1)}, ${held.max.toFixed(0)}`,
        held.wait.toFixed(0),
      ];
      section.row([name.replace("loop: ", ""), seconds.toFixed(1), ...told]);
    }
  } finally {
    await server.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

const heldIn = async (url: string): Promise<Held> => (await fetch(`${url}/loop`)).json() as Promise<Held>;

/** Milliseconds of each answer, sorted. */
async function hellosDuring(url: string, work: () => Promise<unknown>): Promise<readonly number[]> {
  const worker = new Worker(new URL("hello_worker.ts", import.meta.url), { workerData: url });
  const told = once(worker, "message");
  told.catch(() => {});
  try {
    await work();
    worker.postMessage("over");
    const [waits] = (await told) as [number[]];
    return waits.sort((one, other) => one - other);
  } finally {
    await worker.terminate();
  }
}

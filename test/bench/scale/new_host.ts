/** How long a host takes that is new to a store with many blocks, and what it keeps of them. */
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { exchange } from "#test/bench/node/client.ts";
import { archive } from "#test/bench/node/content.ts";
import type { StoreSettings } from "#test/support/engines/shared_store.ts";
import type { RpcServer } from "#test/support/rpc_server.ts";
import { cacheOf, cpuOf, type Program, peakOf, requestsOf, startHost } from "./hosts.ts";
import { addFile, catFile } from "./works.ts";

/** Of one request. */
const MAX_IMPORTED = 10_000;
const BLOCK_BYTES = 64;
const FILE_BYTES = 1024;
/** Beyond those of the large file's seeds. */
const SEED = 900_000;

export interface NewHost {
  readonly blocks: number;
  /**
   * Seconds from the start of the process to its first answer, and to that which needs a block of
   * the store.
   */
  readonly first: number;
  readonly block: number;
  /** Seconds of the processor up to then. */
  readonly cpu: number;
  readonly requests: number;
  /** The same when the whole index is on its disk. */
  readonly whole: number;
  readonly wholeCpu: number;
  /** Most memory, in bytes. */
  readonly peak: number;
  /** Bytes of the index for each block of the store. */
  readonly indexed: number;
}

/** Stores so many raw blocks by `writer`, and a file behind them, whose CID it gives. */
export async function fill({ url }: RpcServer, blocks: number): Promise<string> {
  for (let done = 0; done < blocks; done += MAX_IMPORTED) {
    const count = Math.min(MAX_IMPORTED, blocks - done);
    await exchange(url, "/api/v0/dag/import?pin-roots=false", archive(count * BLOCK_BYTES, SEED + done, BLOCK_BYTES));
  }
  return addFile(url, FILE_BYTES, SEED);
}

/** Starts a host whose name is new, or one that is not, and ends it. */
export async function measureNewHost(
  program: Program,
  folder: string,
  name: string,
  store: StoreSettings,
  { cid, blocks }: { readonly cid: string; readonly blocks: number },
): Promise<NewHost> {
  const began = performance.now();
  await using server = await startHost(program, folder, name, store);
  await exchange(server.url, "/api/v0/version");
  const first = (performance.now() - began) / 1000;
  await catFile(server.url, cid, FILE_BYTES);
  const block = (performance.now() - began) / 1000;
  const cpu = cpuOf([server]);
  const requests = await requestsOf([server]);
  // Counts the blocks by the index.
  await exchange(server.url, "/api/v0/repo/stat");
  const whole = (performance.now() - began) / 1000;
  const wholeCpu = cpuOf([server]);
  const peak = peakOf([server]);
  const indexed = (await indexBytes(cacheOf(folder, name))) / blocks;
  return { blocks, first, block, cpu, requests, whole, wholeCpu, peak, indexed };
}

/** What the index has on the disk. */
async function indexBytes(cache: string): Promise<number> {
  const all = await readdir(cache, { recursive: true, withFileTypes: true });
  const own = all.filter((entry) => entry.isFile() && entry.parentPath.endsWith("/blocks/index"));
  const sizes = await Promise.all(own.map(async ({ parentPath, name }) => (await stat(join(parentPath, name))).blocks));
  return sizes.reduce((sum, count) => sum + count * 512, 0);
}

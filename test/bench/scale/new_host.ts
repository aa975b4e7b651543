/** Measures how long a new host takes on a store with many blocks, and how large its index is. */
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { exchange } from "#test/bench/node/client.ts";
import { archive } from "#test/bench/node/content.ts";
import type { StoreSettings } from "#test/support/engines/shared_store.ts";
import type { RpcServer } from "#test/support/rpc_server.ts";
import { cacheOf, cpuOf, type Program, peakOf, requestsOf, startHost } from "./hosts.ts";
import { addFile, catFile } from "./works.ts";

/** Maximum number of blocks in one request. */
const MAX_IMPORTED = 10_000;
const BLOCK_BYTES = 64;
const FILE_BYTES = 1024;
/** Higher than the seeds of the large file. */
const SEED = 900_000;

export interface NewHost {
  readonly blocks: number;
  /**
   * Seconds from the start of the process to its first response, and to the first that needs a
   * block of the store.
   */
  readonly first: number;
  readonly block: number;
  /** Seconds of CPU time until then. */
  readonly cpu: number;
  readonly requests: number;
  /**
   * Seconds to the first response, and of CPU time, when the whole index is on its disk already.
   */
  readonly whole: number;
  readonly wholeCpu: number;
  /** Peak memory in bytes. */
  readonly peak: number;
  /** Bytes of the index per block of the store. */
  readonly indexed: number;
}

/** Stores raw blocks through a host, and then a file. Resolves to the CID of the file. */
export async function fill({ url }: RpcServer, blocks: number): Promise<string> {
  for (let done = 0; done < blocks; done += MAX_IMPORTED) {
    const count = Math.min(MAX_IMPORTED, blocks - done);
    await exchange(url, "/api/v0/dag/import?pin-roots=false", archive(count * BLOCK_BYTES, SEED + done, BLOCK_BYTES));
  }
  return addFile(url, FILE_BYTES, SEED);
}

/** Starts a host under a new or a known name, and stops it. */
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
  // Counts the blocks with the index.
  await exchange(server.url, "/api/v0/repo/stat");
  const whole = (performance.now() - began) / 1000;
  const wholeCpu = cpuOf([server]);
  const peak = peakOf([server]);
  const indexed = (await indexBytes(cacheOf(folder, name))) / blocks;
  return { blocks, first, block, cpu, requests, whole, wholeCpu, peak, indexed };
}

/** Resolves to the size of the index on the disk. */
async function indexBytes(cache: string): Promise<number> {
  const all = await readdir(cache, { recursive: true, withFileTypes: true });
  const own = all.filter((entry) => entry.isFile() && entry.parentPath.endsWith("/blocks/index"));
  const sizes = await Promise.all(own.map(async ({ parentPath, name }) => (await stat(join(parentPath, name))).blocks));
  return sizes.reduce((sum, count) => sum + count * 512, 0);
}

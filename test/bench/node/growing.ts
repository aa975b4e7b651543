/** The works of `growth.ts`, which are repeated with growing amounts. */
import { exchange, inParallel, type Upload } from "./client.ts";
import { archive, file, files } from "./content.ts";
import { lastHash, type NodeScale } from "./works.ts";

export interface Growing {
  readonly name: string;
  /** Unit of the amount. */
  readonly unit: "entries" | "blocks" | "MiB";
  /**
   * Whether to repeat the call until all calls together have the largest amount. Otherwise there is
   * one call.
   */
  readonly repeats: boolean;
  /** Prepares for `calls` calls with this amount. Resolves to the function that is timed. */
  prepare(url: string, amount: number, calls: number): Promise<(call: number) => Promise<unknown>>;
}

const api = "/api/v0";
const mebibyte = 2 ** 20;
const SMALL_BYTES = 24;
/** The seed is always the same, so that a larger directory contains the files of a smaller one. */
const SEED = 7000;
const RANGES = 200;
const RANGE_BYTES = 4096;
/** Number of small calls at each size of the repo, and the size of their content. */
const CALLS = 1000;
const CALL_BYTES = 1024;

/** Returns the largest amount. */
export const amountOf = ({ unit }: Growing, { size, entries }: NodeScale): number =>
  unit === "MiB" ? size / mebibyte : entries;

/** Requests a list and checks that it has at least `each` bytes per entry. */
async function listed(url: string, path: string, count: number, each: number): Promise<void> {
  const { bytes } = await exchange(url, `${api}/${path}`);
  if (bytes < count * each) throw new Error(`${path} gave ${bytes} bytes for ${count} entries`);
}

async function tree(url: string, count: number): Promise<string> {
  // Kubo decides by the size of a directory and does not know this setting.
  const shard = exchange(url, `${api}/config?arg=Experimental.ShardingEnabled&arg=true&bool=true`);
  await shard.catch(() => {});
  return hashOf(exchange(url, `${api}/add?progress=false&pin=false`, files(count, SMALL_BYTES, SEED, "tree")));
}

const added = (url: string, amount: number, seed: number): Promise<string> =>
  hashOf(exchange(url, `${api}/add?progress=false`, file(Math.round(amount * mebibyte), seed)));

const hashOf = async (received: ReturnType<typeof exchange>): Promise<string> => lastHash((await received).tail);

/** Reads all of a file that exists. */
const reading = (name: string, path: (cid: string) => string): Growing => ({
  name,
  unit: "MiB",
  repeats: true,
  async prepare(url, amount) {
    const cid = await added(url, amount, SEED);
    return () => listed(url, path(cid), amount, mebibyte);
  },
});

/** Lists a directory that exists. */
const listing = (name: string, each: number, path: (cid: string) => string): Growing => ({
  name,
  unit: "entries",
  repeats: true,
  async prepare(url, count) {
    const cid = await tree(url, count);
    // The first list is not measured: few entries are listed again and again, and are cached then.
    await listed(url, path(cid), count, each);
    return () => listed(url, path(cid), count, each);
  },
});

let lastSeed = SEED;
/** Returns a seed for content that no earlier call had. */
const fresh = (): number => {
  lastSeed += 1;
  return lastSeed;
};

interface SmallCall {
  readonly path: string;
  readonly upload?: Upload;
}

/**
 * Small calls that cost the same however many blocks the repo has. `prepare` returns a function
 * that makes the calls of one turn.
 */
const callsOnGrowingRepo = (name: string, prepare: (url: string) => Promise<() => Iterable<SmallCall>>): Growing => ({
  name: `${CALLS.toLocaleString("en")} calls: ${name}`,
  unit: "blocks",
  repeats: false,
  async prepare(url, count) {
    await exchange(url, `${api}/add?progress=false&pin=false`, files(count, SMALL_BYTES, fresh()));
    const calls = await prepare(url);
    // The first calls are not measured, because the first step would include the compilation of the
    // code.
    await inParallel(url, calls());
    return () => inParallel(url, calls());
  },
});

const times = <T>(make: (at: number) => T): T[] => Array.from({ length: CALLS }, (_, at) => make(at));
const uploads = (path: string) => times(() => ({ path: `${api}/${path}`, upload: file(CALL_BYTES, fresh()) }));

export const growing: readonly Growing[] = [
  {
    name: "add of a file",
    unit: "MiB",
    repeats: true,
    prepare: async (url, amount) => () => added(url, amount, fresh()),
  },
  {
    name: "add of many files",
    unit: "entries",
    repeats: true,
    prepare: async (url, count) => () =>
      exchange(url, `${api}/add?progress=false&pin=false`, files(count, SMALL_BYTES, fresh(), "tree")),
  },
  reading("cat", (cid) => `cat?arg=${cid}`),
  {
    name: `${RANGES} ranges of a file`,
    unit: "MiB",
    repeats: false,
    async prepare(url, amount) {
      const cid = await added(url, amount, SEED);
      const last = amount * mebibyte - RANGE_BYTES;
      const paths = Array.from({ length: RANGES }, (_, at) => {
        const offset = Math.floor(((at * 7919) % RANGES) * (last / RANGES));
        return { path: `${api}/cat?arg=${cid}&offset=${offset}&length=${RANGE_BYTES}` };
      });
      return () => inParallel(url, paths);
    },
  },
  reading("dag/export", (cid) => `dag/export?arg=${cid}`),
  {
    name: "dag/import",
    unit: "MiB",
    repeats: true,
    async prepare(url, amount, calls) {
      // Rounds the amount to whole blocks of 64 KiB.
      const bytes = Math.round(amount * 16) * (mebibyte / 16);
      const uploads = Array.from({ length: calls }, () => archive(bytes, fresh(), mebibyte / 16));
      return (call) => exchange(url, `${api}/dag/import`, uploads[call]);
    },
  },
  listing("ls", 80, (cid) => `ls?arg=${cid}`),
  listing("ls, streamed", 80, (cid) => `ls?arg=${cid}&stream=true`),
  listing("refs", 50, (cid) => `refs?arg=${cid}&recursive=true`),
  {
    name: "files/ls, long",
    unit: "entries",
    repeats: true,
    async prepare(url, count, calls) {
      const cid = await tree(url, count);
      // These directories were not listed before, because a server may cache lists.
      for (let call = 0; call < calls; call += 1) {
        const path = `/tree-${count}-${call}`;
        await exchange(url, `${api}/files/cp?arg=/ipfs/${cid}&arg=${path}`);
        await exchange(url, `${api}/files/write?arg=${path}/own&create=true`, file(SMALL_BYTES, fresh()));
      }
      return (call) => listed(url, `files/ls?arg=/tree-${count}-${call}&long=true`, count, 80);
    },
  },
  {
    name: "pin/ls",
    unit: "entries",
    repeats: true,
    async prepare(url, count) {
      await exchange(url, `${api}/add?progress=false`, files(count, SMALL_BYTES, SEED));
      return () => listed(url, "pin/ls?type=recursive", count, 50);
    },
  },
  {
    name: "repo/gc",
    unit: "entries",
    repeats: false,
    async prepare(url, count) {
      await exchange(url, `${api}/add?progress=false&pin=false`, files(count, SMALL_BYTES, SEED));
      return () => listed(url, "repo/gc", count, 50);
    },
  },
  callsOnGrowingRepo("version", async () => () => times(() => ({ path: `${api}/version` }))),
  callsOnGrowingRepo("add of 1 KiB", async () => () => uploads("add")),
  callsOnGrowingRepo("block/put of 1 KiB", async () => () => uploads("block/put")),
  callsOnGrowingRepo("block/get of 1 KiB", async (url) => {
    const put = await inParallel(url, uploads("block/put"));
    const gets = put.map((text) => ({ path: `${api}/block/get?arg=${lastHash(text)}` }));
    return () => gets;
  }),
];

/** What is done with more and more: the works of `growth.ts`. */
import { exchange, inParallel, type Upload } from "./client.ts";
import { archive, file, files } from "./content.ts";
import { lastHash, type Scale } from "./works.ts";

export interface Growing {
  readonly name: string;
  /** What there is more and more of. */
  readonly unit: "entries" | "blocks" | "MiB";
  /** As many calls as have so much in all as the largest; otherwise one. */
  readonly repeats: boolean;
  /** Makes what has to be there for so many calls on so much; gives what is timed. */
  prepare(url: string, amount: number, calls: number): Promise<(call: number) => Promise<unknown>>;
}

const api = "/api/v0";
const mebibyte = 2 ** 20;
const SMALL_BYTES = 24;
/** Always the same: more files are the fewer and others. */
const SEED = 7000;
const RANGES = 200;
const RANGE_BYTES = 4096;
/** Small calls at each size of the repo, and their content. */
const CALLS = 1000;
const CALL_BYTES = 1024;

/** Of the largest. */
export const amountOf = ({ unit }: Growing, { size, entries }: Scale): number =>
  unit === "MiB" ? size / mebibyte : entries;

/** An answer with at least so many bytes for each entry. */
async function listed(url: string, path: string, count: number, each: number): Promise<void> {
  const { bytes } = await exchange(url, `${api}/${path}`);
  if (bytes < count * each) throw new Error(`${path} gave ${bytes} bytes for ${count} entries`);
}

async function tree(url: string, count: number): Promise<string> {
  // Kubo goes by the size of a directory, and knows no such switch.
  const shard = exchange(url, `${api}/config?arg=Experimental.ShardingEnabled&arg=true&bool=true`);
  await shard.catch(() => {});
  return hashOf(exchange(url, `${api}/add?progress=false&pin=false`, files(count, SMALL_BYTES, SEED, "tree")));
}

const added = (url: string, amount: number, seed: number): Promise<string> =>
  hashOf(exchange(url, `${api}/add?progress=false`, file(Math.round(amount * mebibyte), seed)));

const hashOf = async (answer: ReturnType<typeof exchange>): Promise<string> => lastHash((await answer).tail);

/** Reads all of a file that is there. */
const reading = (name: string, path: (cid: string) => string): Growing => ({
  name,
  unit: "MiB",
  repeats: true,
  async prepare(url, amount) {
    const cid = await added(url, amount, SEED);
    return () => listed(url, path(cid), amount, mebibyte);
  },
});

/** Lists a directory that is there. */
const listing = (name: string, each: number, path: (cid: string) => string): Growing => ({
  name,
  unit: "entries",
  repeats: true,
  async prepare(url, count) {
    const cid = await tree(url, count);
    // Once unmeasured: the few entries are listed again and again, and are at hand then.
    await listed(url, path(cid), count, each);
    return () => listed(url, path(cid), count, each);
  },
});

let lastSeed = SEED;
/** For contents that no call before has had. */
const fresh = (): number => {
  lastSeed += 1;
  return lastSeed;
};

interface SmallCall {
  readonly path: string;
  readonly upload?: Upload;
}

/**
 * Small calls, of which each costs the same however many blocks the repo has. `prepare` gives the
 * calls of one turn.
 */
const besideBlocks = (name: string, prepare: (url: string) => Promise<() => Iterable<SmallCall>>): Growing => ({
  name: `${CALLS.toLocaleString("en")} calls: ${name}`,
  unit: "blocks",
  repeats: false,
  async prepare(url, count) {
    await exchange(url, `${api}/add?progress=false&pin=false`, files(count, SMALL_BYTES, fresh()));
    const calls = await prepare(url);
    // Once unmeasured: the first step would have the compilation of all.
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
      // In whole blocks of 64 KiB.
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
      // Directories that were not listed before, since a list may be kept.
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
  besideBlocks("version", async () => () => times(() => ({ path: `${api}/version` }))),
  besideBlocks("add of 1 KiB", async () => () => uploads("add")),
  besideBlocks("block/put of 1 KiB", async () => () => uploads("block/put")),
  besideBlocks("block/get of 1 KiB", async (url) => {
    const put = await inParallel(url, uploads("block/put"));
    const gets = put.map((answer) => ({ path: `${api}/block/get?arg=${lastHash(answer)}` }));
    return () => gets;
  }),
];

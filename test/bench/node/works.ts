/** The works that are measured on every server. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import type { ReadableStream } from "node:stream/web";
import { exchange, inParallel, ready, type Upload } from "./client.ts";
import { archive, file, files, stored } from "./content.ts";

/** The amount of work. */
export interface NodeScale {
  /** Bytes of the large file. */
  readonly size: number;
  /** Maximum number of entries of lists. Other counts are derived from it. */
  readonly entries: number;
}

export interface NodeSetting extends NodeScale {
  readonly url: string;
  /** Different in each round, so that the content is new. */
  readonly seed: number;
}

export interface NodeWork {
  readonly name: string;
  /** The goal, as a rate. */
  readonly aim: string;
  readonly unit: string;
  /** Whether it requests a list, which the server for the machine's limit does not have. */
  readonly isList?: true;
  /** Number of units. */
  amount(scale: NodeScale): number;
  /** Prepares the work. Resolves to the function that is timed. */
  prepare(setting: NodeSetting): Promise<() => Promise<unknown>>;
}

const mebibyte = 2 ** 20;
const mebibytes = ({ size }: NodeScale) => size / mebibyte;
const api = "/api/v0";
const blockSize = 256 * 1024;
/** Bytes of each file of a list, and the seed of all of them, which is the same in each round. */
const SMALL_BYTES = 24;
const LISTED = 9000;
/** Parallel calls: like the browser of one user, and like many users. */
const FEW = 8;
const MANY = 64;
const calls = { ranges: 1000, files: 5000, adds: 500, blocks: 500, versions: 10_000, lists: 5 } as const;

const writes = ({ entries }: NodeScale) => entries / 10;

/** Returns the last CID of a response. */
export function lastHash(text: string): string {
  const hash = [...text.matchAll(/"(?:Hash|Key)":"(\w+)"/g)].at(-1)?.[1];
  if (hash === undefined) throw new Error(`No CID in ${text}`);
  return hash;
}

const addFile = async ({ url, size, seed }: NodeSetting) =>
  lastHash((await exchange(url, `${api}/add?progress=false`, file(size, seed))).tail);

function* times<T>(count: number, make: (at: number) => T): Generator<T> {
  for (let at = 0; at < count; at += 1) yield make(at);
}

const blocksOf = (seed: number): readonly Upload[] =>
  Array.from(times(calls.blocks, (at) => ready(file(blockSize, seed * 10_000 + at))));

const putBlocks = (url: string, blocks: readonly Upload[], atOnce = FEW) =>
  inParallel(
    url,
    blocks.map((upload) => ({ path: `${api}/block/put`, upload })),
    atOnce,
  );

const adding = (atOnce: number): NodeWork => ({
  name: `500 adds of 1 KiB, ${atOnce} at a time`,
  aim: "2 x Kubo",
  unit: "calls/s",
  amount: () => calls.adds,
  async prepare({ url, seed }) {
    const from = (seed * 100 + atOnce) * calls.adds;
    const adds = Array.from(times(calls.adds, (at) => ({ path: `${api}/add`, upload: ready(file(1024, from + at)) })));
    return () => inParallel(url, adds, atOnce);
  },
});

const putting = (atOnce: number): NodeWork => ({
  name: `block/put of 256 KiB, ${atOnce} at a time`,
  aim: "2 x Kubo",
  unit: "calls/s",
  amount: () => calls.blocks,
  async prepare({ url, seed }) {
    const blocks = blocksOf(seed * 100 + atOnce);
    return () => putBlocks(url, blocks, atOnce);
  },
});

const filesAtOnce = (count: number): NodeWork => ({
  name: `${count.toLocaleString("en")} files of 4 KiB in one request`,
  aim: "3 x Kubo",
  unit: "files/s",
  amount: () => count,
  async prepare({ url, seed }) {
    const upload = files(count, 4096, seed + 1000, "tree");
    return () => exchange(url, `${api}/add?progress=false`, upload);
  },
});

/** Works with large content, compared with the limit of the machine. */
export const large: readonly NodeWork[] = [
  {
    name: "add",
    aim: "1.4 x Kubo, 0.75 x the least",
    unit: "MiB/s",
    amount: mebibytes,
    prepare: async (setting) => () => addFile(setting),
  },
  {
    name: "cat",
    aim: "1.5 x Kubo, 1 x the least",
    unit: "MiB/s",
    amount: mebibytes,
    async prepare(setting) {
      const cid = await addFile(setting);
      return async () => {
        const { bytes } = await exchange(setting.url, `${api}/cat?arg=${cid}`);
        if (bytes < setting.size) throw new Error(`cat gave ${bytes} bytes of ${setting.size}`);
      };
    },
  },
  {
    name: "dag/import",
    aim: "1.5 x Kubo",
    unit: "MiB/s",
    amount: mebibytes,
    async prepare({ url, size, seed }) {
      const upload = archive(size, seed + 2000);
      return () => exchange(url, `${api}/dag/import`, upload);
    },
  },
  {
    name: "dag/export",
    aim: "1.5 x Kubo",
    unit: "MiB/s",
    amount: mebibytes,
    async prepare(setting) {
      const cid = await addFile(setting);
      return async () => {
        const { bytes } = await exchange(setting.url, `${api}/dag/export?arg=${cid}`);
        if (bytes < setting.size) throw new Error(`dag/export gave ${bytes} bytes of ${setting.size}`);
      };
    },
  },
  {
    name: "files/write",
    aim: "1.5 x Kubo",
    unit: "MiB/s",
    amount: mebibytes,
    prepare: async ({ url, size, seed }) => {
      const upload = file(size, seed + 3000);
      return () => exchange(url, `${api}/files/write?arg=/large-${seed}&create=true&truncate=true`, upload);
    },
  },
];

const MANY_ENTRIES = 1_000_000;
/** A long timeout for the server: some need minutes for so many entries. */
const LONGEST = "timeout=15m";
/** CIDs of the large directory, by round and server: it is added once. */
const largeTrees = new Map<number, Map<string, Promise<string>>>();

function largeTree({ url, seed }: NodeSetting): Promise<string> {
  const trees = largeTrees.get(seed) ?? new Map<string, Promise<string>>();
  largeTrees.set(seed, trees);
  const [first] = trees;
  const made = trees.get(url) ?? (first === undefined ? addTree(url) : copyTree(url, ...first));
  trees.set(url, made);
  return made;
}

async function addTree(url: string): Promise<string> {
  await exchange(url, `${api}/config?arg=Experimental.ShardingEnabled&arg=true&bool=true`);
  const upload = files(MANY_ENTRIES, SMALL_BYTES, LISTED, "tree");
  return lastHash((await exchange(url, `${api}/add?progress=false&pin=false`, upload)).tail);
}

/**
 * Copies the directory from the server that has it: Kubo does not add so many files within 15
 * minutes.
 */
async function copyTree(url: string, from: string, made: Promise<string>): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "modhost-bench-tree-"));
  const path = join(folder, "tree.car");
  try {
    const cid = await made;
    const { body } = await fetch(`${from}${api}/dag/export?arg=${cid}&progress=false`, { method: "POST" });
    await writeFile(path, Readable.fromWeb(body as ReadableStream));
    await exchange(url, `${api}/dag/import?pin-roots=false&${LONGEST}`, stored(path));
    return cid;
  } finally {
    await rm(folder, { recursive: true });
  }
}

const listingMany = (name: string, each: number, query: string): NodeWork => ({
  name: `${name} of ${MANY_ENTRIES.toLocaleString("en")} entries, sharded`,
  aim: "1.5 x Kubo",
  unit: "entries/s",
  isList: true,
  amount: () => MANY_ENTRIES,
  async prepare(setting) {
    const cid = await largeTree(setting);
    return async () => {
      const { bytes } = await exchange(setting.url, `${api}/ls?arg=${cid}&${LONGEST}${query}`);
      if (bytes < MANY_ENTRIES * each) throw new Error(`${name} gave ${bytes} bytes for ${MANY_ENTRIES} entries`);
    };
  },
});

/** Works with one long request each, for `--full`. */
export const long: readonly NodeWork[] = [
  filesAtOnce(100_000),
  listingMany("ls", 80, ""),
  listingMany("ls without sizes and types", 60, "&size=false&resolve-type=false"),
];

/** Works with many small calls. */
export const small: readonly NodeWork[] = [
  {
    name: "1,000 ranges of 4 KiB, 8 at a time",
    aim: "1.5 x Kubo",
    unit: "calls/s",
    amount: () => calls.ranges,
    async prepare(setting) {
      const cid = await addFile(setting);
      // Spreads the ranges over the file, in no obvious order.
      const offset = (at: number) => Math.floor(((at * 7919) % calls.ranges) * ((setting.size - 4096) / calls.ranges));
      return () =>
        inParallel(
          setting.url,
          times(calls.ranges, (at) => ({ path: `${api}/cat?arg=${cid}&offset=${offset(at)}&length=4096` })),
        );
    },
  },
  filesAtOnce(calls.files),
  adding(FEW),
  adding(MANY),
  {
    name: "small files/write, 8 at a time",
    aim: "1.5 x Kubo",
    unit: "calls/s",
    amount: writes,
    async prepare({ url, seed, ...scale }) {
      await inParallel(url, [{ path: `${api}/files/mkdir?arg=/small-${seed}` }]);
      const uploads = Array.from(
        times(writes(scale), (at) => ({
          path: `${api}/files/write?arg=/small-${seed}/${at}&create=true`,
          upload: ready(file(100, seed * 30_000 + at)),
        })),
      );
      return () => inParallel(url, uploads);
    },
  },
  putting(FEW),
  putting(MANY),
  {
    name: "block/get of 256 KiB, 8 at a time",
    aim: "1.5 x Kubo",
    unit: "calls/s",
    amount: () => calls.blocks,
    async prepare(setting) {
      const cids = (await putBlocks(setting.url, blocksOf(setting.seed))).map(lastHash);
      return () =>
        inParallel(
          setting.url,
          times(calls.blocks, (at) => ({ path: `${api}/block/get?arg=${cids[at]}` })),
        );
    },
  },
  {
    name: "version, 8 at a time",
    aim: "1.5 x Kubo",
    unit: "calls/s",
    amount: () => calls.versions,
    prepare:
      async ({ url }) =>
      () =>
        inParallel(
          url,
          times(calls.versions, () => ({ path: `${api}/version` })),
        ),
  },
];

/**
 * Requests a list several times, one after the other, and checks that it has at least `each` bytes
 * per entry.
 */
async function listed(url: string, path: string, entries: number, each: number): Promise<void> {
  for (const _ of times(calls.lists, String)) {
    const { bytes } = await exchange(url, `${api}/${path}`);
    if (bytes < entries * each) throw new Error(`${path} gave ${bytes} bytes for ${entries} entries`);
  }
}

const listing = (name: string, each: number, path: (cid: string) => string): NodeWork => ({
  name: `${name} of 5,000 entries`,
  aim: "1.5 x Kubo",
  unit: "entries/s",
  isList: true,
  amount: () => calls.lists * calls.files,
  async prepare({ url }) {
    const upload = files(calls.files, SMALL_BYTES, LISTED, "tree");
    const cid = lastHash((await exchange(url, `${api}/add?progress=false&pin=false`, upload)).tail);
    const found = await exchange(url, `${api}/files/stat?arg=/listed`).catch(() => undefined);
    if (found === undefined) await exchange(url, `${api}/files/cp?arg=/ipfs/${cid}&arg=/listed`);
    return () => listed(url, path(cid), calls.files, each);
  },
});

/** Works whose responses come from the store's index and small blocks. */
export const lists: readonly NodeWork[] = [
  listing("ls", 80, (cid) => `ls?arg=${cid}`),
  listing("ls without sizes and types", 60, (cid) => `ls?arg=${cid}&size=false&resolve-type=false`),
  listing("refs", 50, (cid) => `refs?arg=${cid}`),
  listing("files/ls -l", 80, () => "files/ls?arg=/listed&long=true"),
  {
    name: "pin/ls",
    aim: "1.5 x Kubo",
    unit: "pins/s",
    isList: true,
    amount: ({ entries }) => calls.lists * entries,
    async prepare({ url, entries }) {
      await exchange(url, `${api}/add?progress=false`, files(entries, SMALL_BYTES, LISTED + 1));
      return () => listed(url, "pin/ls?type=recursive", entries, 50);
    },
  },
];

/** Warms up the servers without measuring them. */
export async function warmUp(setting: NodeSetting): Promise<void> {
  const cid = await addFile({ ...setting, size: 16 * mebibyte, seed: setting.seed + 5000 });
  await exchange(setting.url, `${api}/cat?arg=${cid}`);
}

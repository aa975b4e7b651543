/**
 * The tasks of the benchmark: each has the same content and is done over RPC, and by another
 * process in the folders of a mounted node.
 */
import { mkdir, open, readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { exchange, inParallel } from "#test/bench/node/client.ts";
import { file, files } from "#test/bench/node/content.ts";
import { lastHash } from "#test/bench/node/works.ts";
import { keystream } from "#test/support/content.ts";

export interface MountScale {
  /** Bytes of the large file. */
  readonly size: number;
}

/** A node, and the folders on which it is mounted. */
export interface Mount {
  readonly url: string;
  readonly ipfs: string;
  readonly ipns: string;
}

export interface MountSetting extends MountScale, Mount {
  /** Different in each round, so that the content is new. */
  readonly seed: number;
}

/** The second one is compared with the first. */
export const ways = ["RPC", "mount"] as const;

export interface Task {
  readonly name: string;
  readonly unit: string;
  /** Number of units. */
  amount(scale: MountScale): number;
  /** Prepares the task. Resolves to the function that is timed. */
  prepare(setting: MountSetting): Promise<Readonly<Record<(typeof ways)[number], () => Promise<unknown>>>>;
}

const api = "/api/v0";
const mebibyte = 2 ** 20;
const mebibytes = ({ size }: MountScale) => size / mebibyte;
const counts = { readers: 4, ranges: 2000, files: 1000 } as const;
const rangeBytes = 4096;
const smallBytes = 4096;

export async function mountFor(url: string, folder: string): Promise<Mount> {
  const ipfs = join(folder, "ipfs");
  const ipns = join(folder, "ipns");
  await Promise.all([mkdir(ipfs), mkdir(ipns)]);
  const query = new URLSearchParams({ "ipfs-path": ipfs, "ipns-path": ipns });
  await exchange(url, `${api}/mount?${query}`);
  return { url, ipfs, ipns };
}

const addFile = async (url: string, size: number, seed: number) =>
  lastHash((await exchange(url, `${api}/add?progress=false`, file(size, seed))).tail);

async function cat(url: string, cid: string, size: number): Promise<void> {
  const { bytes } = await exchange(url, `${api}/cat?arg=${cid}`);
  if (bytes < size) throw new Error(`cat gave ${bytes} bytes of ${size}`);
}

/** Reads a file from the first byte to the last, 1 MiB at a time, into the same buffer. */
async function readThrough(path: string, size: number): Promise<void> {
  await using handle = await open(path);
  const buffer = Buffer.allocUnsafe(mebibyte);
  let bytes = 0;
  for (let length = -1; length !== 0; bytes += length) length = (await handle.read(buffer)).bytesRead;
  if (bytes !== size) throw new Error(`${path} has ${bytes} bytes, not ${size}`);
}

/** Offsets in no obvious order, spread over the file. */
const offsets = (size: number): readonly number[] =>
  Array.from({ length: counts.ranges }, (_, at) =>
    Math.floor(((at * 7919) % counts.ranges) * ((size - rangeBytes) / counts.ranges)),
  );

/** Runs a function for all items, `atOnce` at a time. */
async function several<T>(items: Iterable<T>, atOnce: number, run: (item: T) => Promise<unknown>): Promise<void> {
  const waiting = items[Symbol.iterator]();
  const work = async () => {
    for (let next = waiting.next(); next.done !== true; next = waiting.next()) await run(next.value);
  };
  await Promise.all(Array.from({ length: atOnce }, work));
}

export const tasks: readonly Task[] = [
  {
    name: "a large file, from its first byte to its last",
    unit: "MiB/s",
    amount: mebibytes,
    async prepare({ url, ipfs, size, seed }) {
      const cid = await addFile(url, size, seed);
      return { RPC: () => cat(url, cid, size), mount: () => readThrough(join(ipfs, cid), size) };
    },
  },
  {
    name: "the same, read for the second time",
    unit: "MiB/s",
    amount: mebibytes,
    async prepare({ url, ipfs, size, seed }) {
      const cid = await addFile(url, size, seed);
      await readThrough(join(ipfs, cid), size);
      return { RPC: () => cat(url, cid, size), mount: () => readThrough(join(ipfs, cid), size) };
    },
  },
  {
    name: `${counts.readers} readers at a time, each with a file of its own`,
    unit: "MiB/s",
    amount: mebibytes,
    async prepare({ url, ipfs, size, seed }) {
      const each = size / counts.readers;
      const cids: string[] = [];
      for (let at = 0; at < counts.readers; at += 1) cids.push(await addFile(url, each, seed * 100 + at));
      return {
        RPC: () => Promise.all(cids.map((cid) => cat(url, cid, each))),
        mount: () => Promise.all(cids.map((cid) => readThrough(join(ipfs, cid), each))),
      };
    },
  },
  {
    name: "ranges of 4 KiB in no order, 4 at a time",
    unit: "reads/s",
    amount: () => counts.ranges,
    async prepare({ url, ipfs, size, seed }) {
      const cid = await addFile(url, size, seed + 1000);
      const paths = offsets(size).map((at) => `${api}/cat?arg=${cid}&offset=${at}&length=${rangeBytes}`);
      return {
        RPC: () =>
          inParallel(
            url,
            paths.map((path) => ({ path })),
            counts.readers,
          ),
        async mount() {
          await using handle = await open(join(ipfs, cid));
          await several(offsets(size), counts.readers, async (at) => {
            const { bytesRead } = await handle.read(Buffer.allocUnsafe(rangeBytes), 0, rangeBytes, at);
            if (bytesRead !== rangeBytes) throw new Error(`${bytesRead} bytes at ${at}`);
          });
        },
      };
    },
  },
  {
    name: "all of 1,000 files of 4 KiB in a directory, 4 at a time",
    unit: "files/s",
    amount: () => counts.files,
    async prepare({ url, ipfs, seed }) {
      const upload = files(counts.files, smallBytes, seed + 2000, "tree");
      const root = lastHash((await exchange(url, `${api}/add?progress=false`, upload)).tail);
      return {
        async RPC() {
          const response = await fetch(`${url}${api}/ls?arg=${root}`, { method: "POST" });
          const { Objects } = (await response.json()) as { Objects: [{ Links: readonly { Name: string }[] }] };
          const paths = Objects[0].Links.map(({ Name }) => ({ path: `${api}/cat?arg=${root}/${Name}` }));
          await inParallel(url, paths, counts.readers);
        },
        async mount() {
          const names = await readdir(join(ipfs, root));
          await several(names, counts.readers, async (name) => {
            const { length } = await readFile(join(ipfs, root, name));
            if (length !== smallBytes) throw new Error(`${name} has ${length} bytes`);
          });
        },
      };
    },
  },
  {
    name: "writing a large file: files/write, and to the own name until it is on the disk",
    unit: "MiB/s",
    amount: mebibytes,
    async prepare({ url, ipns, size, seed }) {
      const upload = file(size, seed + 3000);
      return {
        RPC: () => exchange(url, `${api}/files/write?arg=/large&create=true&truncate=true`, upload),
        async mount() {
          await using handle = await open(join(ipns, "local", "large"), "w");
          await handle.writeFile(keystream(size, seed + 4000));
          await handle.sync();
        },
      };
    },
  },
];

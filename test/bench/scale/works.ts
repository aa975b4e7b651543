/** The works for one host, or for several at the same time. */
import { exchange, inParallel } from "#test/bench/node/client.ts";
import { file, files } from "#test/bench/node/content.ts";
import { lastHash } from "#test/bench/node/works.ts";

export interface SharedStoreScale {
  /** Bytes of the large file. */
  readonly size: number;
  /** Small files of one request. */
  readonly files: number;
  /** Calls of each kind. */
  readonly calls: number;
}

/** One host's part of a work. */
export interface SharedStoreSetting extends SharedStoreScale {
  readonly url: string;
  /** URL of the host that writes what this host reads, or undefined if there is none. */
  readonly writer: string | undefined;
  /** Different each time, so that the content is new. */
  readonly seed: number;
}

export interface SharedStoreWork {
  readonly name: string;
  readonly unit: string;
  /** The part of the work that is also measured on the object store itself. */
  readonly limit?: "add" | "get";
  /** Whether it needs a host that writes. */
  readonly needsWriter?: boolean;
  /** Number of units that one host does. */
  amount(scale: SharedStoreScale): number;
  /** Prepares the work. Resolves to the function that is timed. */
  prepare(setting: SharedStoreSetting): Promise<() => Promise<unknown>>;
}

const MEBIBYTE = 2 ** 20;
const SMALL_BYTES = 4096;
const AT_ONCE = 8;
const api = "/api/v0";

export const addFile = async (url: string, size: number, seed: number): Promise<string> =>
  lastHash((await exchange(url, `${api}/add?progress=false`, file(size, seed))).tail);

export async function catFile(url: string, cid: string, size: number): Promise<void> {
  const { bytes } = await exchange(url, `${api}/cat?arg=${cid}`);
  if (bytes < size) throw new Error(`cat gave ${bytes} bytes of ${size}`);
}

const times = <T>(count: number, make: (at: number) => T): T[] => Array.from({ length: count }, (_, at) => make(at));

/** Resolves to CIDs of files that are not pinned. */
async function unpinned({ url, calls, seed }: SharedStoreSetting): Promise<readonly string[]> {
  const adds = times(calls, (at) => ({ path: `${api}/add?pin=false`, upload: file(1024, seed * 1000 + at) }));
  return (await inParallel(url, adds, AT_ONCE)).map(lastHash);
}

const pins = (cids: readonly string[]) => cids.map((cid) => ({ path: `${api}/pin/add?arg=${cid}` }));

export const works: readonly SharedStoreWork[] = [
  {
    name: "add",
    unit: "MiB/s",
    limit: "add",
    amount: ({ size }) => size / MEBIBYTE,
    prepare:
      async ({ url, size, seed }) =>
      () =>
        addFile(url, size, seed),
  },
  {
    name: "files of 4 KiB in one add",
    unit: "files/s",
    amount: (scale) => scale.files,
    async prepare({ url, files: count, seed }) {
      const upload = files(count, SMALL_BYTES, seed, "tree");
      return () => exchange(url, `${api}/add?progress=false`, upload);
    },
  },
  {
    name: `adds of 1 KiB, ${AT_ONCE} at a time`,
    unit: "calls/s",
    amount: ({ calls }) => calls,
    async prepare({ url, calls, seed }) {
      const adds = times(calls, (at) => ({ path: `${api}/add`, upload: file(1024, seed * 1000 + at) }));
      return () => inParallel(url, adds, AT_ONCE);
    },
  },
  {
    name: "cat, cached",
    unit: "MiB/s",
    amount: ({ size }) => size / MEBIBYTE,
    async prepare({ url, size, seed }) {
      const cid = await addFile(url, size, seed);
      await catFile(url, cid, size);
      return () => catFile(url, cid, size);
    },
  },
  {
    name: "cat, cold",
    unit: "MiB/s",
    limit: "get",
    needsWriter: true,
    amount: ({ size }) => size / MEBIBYTE,
    async prepare({ url, writer = "", size, seed }) {
      const cid = await addFile(writer, size, seed);
      return () => catFile(url, cid, size);
    },
  },
  {
    name: `pin/add, ${AT_ONCE} at a time`,
    unit: "calls/s",
    amount: ({ calls }) => calls,
    async prepare(setting) {
      const cids = await unpinned(setting);
      return () => inParallel(setting.url, pins(cids), AT_ONCE);
    },
  },
  {
    name: `pin/ls of one pin, ${AT_ONCE} at a time`,
    unit: "calls/s",
    amount: ({ calls }) => calls,
    async prepare(setting) {
      const cids = await unpinned(setting);
      await inParallel(setting.url, pins(cids), AT_ONCE);
      const listCalls = cids.map((cid) => ({ path: `${api}/pin/ls?arg=${cid}` }));
      return () => inParallel(setting.url, listCalls, AT_ONCE);
    },
  },
];

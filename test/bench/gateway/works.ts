/** The requests that are measured on every gateway. */
import { fileName } from "#test/bench/node/content.ts";
import type { Get } from "./client.ts";

/** Bytes of each small file. */
export const FILE_BYTES = 4096;
const RANGE_BYTES = 64 * 1024;
const mebibyte = 2 ** 20;

export interface GatewayScale {
  /** Bytes of the large file. */
  readonly size: number;
  /** Number of small files. */
  readonly entries: number;
}

/** CIDs of the content. */
export interface GatewayContent {
  readonly large: string;
  /** A directory of the small files that is one block. */
  readonly flat: string;
  /** A sharded directory of the same files. */
  readonly sharded: string;
  /** The block of one small file. */
  readonly leaf: string;
}

export interface RequestTarget extends GatewayScale, GatewayContent {}

export interface GatewayWork {
  readonly name: string;
  /** Requests that are measured in one turn. */
  readonly count: number;
  readonly atOnce: number;
  /** Units in the response to one request, for the rate. Undefined: each request is one unit. */
  readonly unit?: { readonly name: string; of(scale: GatewayScale): number };
  /** Returns the request with the number `at`. */
  get(target: RequestTarget, at: number): Get;
  /**
   * Returns an equivalent request for the file server; undefined if that server has nothing
   * equivalent.
   */
  readonly plain?: (target: RequestTarget, at: number) => Get;
}

const mebibytes = { name: "MiB/s", of: ({ size }: GatewayScale) => size / mebibyte };
const filesEach = { name: "files/s", of: ({ entries }: GatewayScale) => entries };

/** Spreads requests over all files, in no obvious order. */
const scattered = (at: number, among: number): number => (at * 7919) % among;

function rangeAt(size: number, at: number): Pick<Get, "headers" | "bytes"> {
  const from = scattered(at, Math.floor(size / RANGE_BYTES)) * RANGE_BYTES;
  return { headers: { range: `bytes=${from}-${from + RANGE_BYTES - 1}` }, bytes: RANGE_BYTES };
}

export const works: readonly GatewayWork[] = [
  {
    name: "a file of 4 KiB",
    count: 1000,
    atOnce: 16,
    get: ({ sharded }) => ({ path: `/ipfs/${sharded}/${fileName(7)}`, bytes: FILE_BYTES }),
    plain: () => ({ path: `/small/${fileName(7)}`, bytes: FILE_BYTES }),
  },
  {
    name: "10,000 files of 4 KiB, each once",
    count: 1000,
    atOnce: 16,
    get: ({ sharded, entries }, at) => ({
      path: `/ipfs/${sharded}/${fileName(scattered(at, entries))}`,
      bytes: FILE_BYTES,
    }),
    plain: ({ entries }, at) => ({ path: `/small/${fileName(scattered(at, entries))}`, bytes: FILE_BYTES }),
  },
  {
    name: "a block of 4 KiB",
    count: 1000,
    atOnce: 16,
    get: ({ leaf }) => ({ path: `/ipfs/${leaf}?format=raw`, bytes: FILE_BYTES }),
  },
  {
    name: "a large file",
    count: 6,
    atOnce: 2,
    unit: mebibytes,
    get: ({ large, size }) => ({ path: `/ipfs/${large}`, bytes: size }),
    plain: ({ size }) => ({ path: "/large", bytes: size }),
  },
  {
    name: "ranges of 64 KiB of it",
    count: 500,
    atOnce: 16,
    get: ({ large, size }, at) => ({ path: `/ipfs/${large}`, ...rangeAt(size, at) }),
    plain: ({ size }, at) => ({ path: "/large", ...rangeAt(size, at) }),
  },
  {
    name: "the page of a directory of 10,000",
    count: 4,
    atOnce: 2,
    get: ({ flat, entries }) => ({ path: `/ipfs/${flat}/`, bytes: entries * 100 }),
  },
  {
    name: "the page of a sharded directory of 10,000",
    count: 4,
    atOnce: 2,
    get: ({ sharded, entries }) => ({ path: `/ipfs/${sharded}/`, bytes: entries * 100 }),
  },
  {
    name: "an archive (CAR) of the large file",
    count: 4,
    atOnce: 2,
    unit: mebibytes,
    get: ({ large, size }) => ({ path: `/ipfs/${large}?format=car`, bytes: size }),
  },
  {
    name: "an archive (CAR) of 10,000 files",
    count: 2,
    atOnce: 2,
    unit: filesEach,
    get: ({ flat, entries }) => ({ path: `/ipfs/${flat}?format=car`, bytes: entries * FILE_BYTES }),
  },
  {
    name: "a tar of 10,000 files",
    count: 2,
    atOnce: 2,
    unit: filesEach,
    get: ({ flat, entries }) => ({ path: `/ipfs/${flat}?format=tar`, bytes: entries * FILE_BYTES }),
  },
];

/**
 * The client libraries, and the sizes for their runs. The CIDs are those that go-ipfs 0.9.0
 * computes.
 */
import type { ClientLibrary, DriveSizes } from "./drive.ts";

/**
 * The types of neither library fit the CIDs of the other: drive.ts declares the part that is used.
 */
export const clients: Readonly<Record<string, (url: string) => Promise<ClientLibrary>>> = {
  "kubo-rpc-client": async (url) => (await import("kubo-rpc-client")).create({ url }) as unknown as ClientLibrary,
  "ipfs-http-client": async (url) => (await import("ipfs-http-client")).create({ url }) as unknown as ClientLibrary,
};

export const full: DriveSizes = {
  large: { size: 2 ** 30, cid: "QmZ7KAX3yg3KCaJABkBVXGEmzFugJmLZnX2zpGCEMnfqE1" },
  tree: { folders: 100, cid: "QmRMto1qNK7hM2hdBVa2deRncvovbEj2wM8Sw68Fgwbmfh" },
};

export const short: DriveSizes = {
  large: { size: 5_000_000, cid: "QmUsCSuZbN4uxuTG3MaTSJwWnQHrzX6NW91zgWcSFG84b1" },
  tree: { folders: 3, cid: "QmW31QSmm85SSNkJASGjwhMUAjFsqJKEzxC6spWARnZUy9" },
};

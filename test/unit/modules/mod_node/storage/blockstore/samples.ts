import { hash } from "node:crypto";
import { CID } from "multiformats/cid";
import { create } from "multiformats/hashes/digest";
import { type HashFunction, multihash, sha256 } from "#node/formats/cid/hashes.ts";
import type { Block, BlockStore } from "#node/storage/blockstore/store.ts";

export const raw = 0x55;
export const dagPb = 0x70;

/** Pseudo-random bytes that are the same in each run. */
export function noise(length: number, seed: number): Uint8Array {
  const bytes = new Uint8Array(length);
  let state = (seed * 2654435761 + 1) >>> 0;
  for (let at = 0; at < length; at += 1) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    bytes[at] = state >>> 24;
  }
  return bytes;
}

/** A raw block of a length; the seed distinguishes blocks. */
export function sample(seed: number, length = 100): Block {
  const bytes = noise(length, seed);
  return { cid: CID.createV1(raw, create(sha256.code, hash("sha256", bytes, "buffer"))), bytes };
}

export const samples = (count: number, length = 100, from = 0): Block[] =>
  Array.from({ length: count }, (_, at) => sample(from + at, length));

export const as = (cid: CID, codec: number): CID => CID.createV1(codec, cid.multihash);
export const legacy = (cid: CID): CID => CID.createV0(cid.multihash as Parameters<typeof CID.createV0>[0]);

export async function hashedWith(entry: HashFunction, bytes: Uint8Array): Promise<Block> {
  return { cid: CID.createV1(raw, await multihash(entry, bytes)), bytes };
}

export async function keysOf(store: BlockStore): Promise<string[]> {
  const keys: string[] = [];
  for await (const cid of store.keys()) keys.push(cid.toString());
  return keys.sort();
}

/** All content of a store: forms and bytes. */
export async function contents(store: BlockStore): Promise<Map<string, string>> {
  const content = new Map<string, string>();
  for await (const cid of store.keys()) {
    content.set(cid.toString(), Buffer.from((await store.get(cid)) ?? []).toString("base64"));
  }
  return new Map([...content].sort(([a], [b]) => (a < b ? -1 : 1)));
}

export const contentsOf = (blocks: readonly Block[]): Map<string, string> =>
  new Map(
    blocks
      .map(({ cid, bytes }) => [cid.toString(), Buffer.from(bytes).toString("base64")] as const)
      .sort(([a], [b]) => (a < b ? -1 : 1)),
  );

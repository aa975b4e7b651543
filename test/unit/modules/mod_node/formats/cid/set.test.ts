import assert from "node:assert/strict";
import { test } from "node:test";
import { CID } from "multiformats/cid";
import { create } from "multiformats/hashes/digest";
import { dagPb, raw } from "#node/formats/cid/codecs.ts";
import { multihash, sha256 } from "#node/formats/cid/hashes.ts";
import { CidSet } from "#node/formats/cid/set.ts";

test("a set of 30,000 CIDs contains each of them and nothing else", async () => {
  const set = new CidSet();
  const cids: CID[] = [];
  for (let at = 0; at < 30_000; at += 1) cids.push(CID.createV1(raw, await multihash(sha256, Buffer.from(`${at}`))));
  for (const cid of cids) assert.ok(set.add(cid));
  for (const cid of cids) assert.ok(!set.add(cid) && set.has(cid));
  assert.equal(set.size, cids.length);
  assert.ok(!set.has(CID.createV1(raw, await multihash(sha256, Buffer.from("another")))));
});

test("versions 0 and 1 of a CID are the same member, another codec is a different member", async () => {
  const digest = await multihash(sha256, Buffer.from("x"));
  const set = new CidSet();
  set.add(CID.createV0(digest as never));
  assert.ok(set.has(CID.createV1(dagPb, digest)));
  assert.ok(!set.has(CID.createV1(raw, digest)));
});

test("identity digests with the same beginning are different members", () => {
  const inline = (text: string) => CID.createV1(raw, create(0, Buffer.from(text)));
  const set = new CidSet();
  set.add(inline(`${"a".repeat(40)}1`));
  assert.ok(!set.has(inline(`${"a".repeat(40)}2`)));
  assert.ok(!set.has(inline("")));
  set.add(CID.createV1(raw, create(0x12, new Uint8Array(32))));
  assert.ok(set.has(CID.createV1(raw, create(0x12, new Uint8Array(32)))));
});

test("the digest of a block under another hash function, and a part of the digest, are different members", () => {
  const digest = new Uint8Array(64).fill(7);
  const set = new CidSet();
  set.add(CID.createV1(dagPb, create(0x12, digest.subarray(0, 32))));
  assert.ok(!set.has(CID.createV1(dagPb, create(0x16, digest.subarray(0, 32)))));
  set.add(CID.createV1(dagPb, create(0x13, digest)));
  assert.ok(!set.has(CID.createV1(dagPb, create(0x13, digest.subarray(0, 48)))));
});

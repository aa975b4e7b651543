import assert from "node:assert/strict";
import { test } from "node:test";
import { CID } from "multiformats/cid";
import { create } from "multiformats/hashes/digest";
import { dagPb, raw } from "#node/formats/cid/codecs.ts";
import { multihash, sha256 } from "#node/formats/cid/hashes.ts";
import { CidSet } from "#node/formats/cid/set.ts";

test("30,000 members are each found again, and nothing else is", async () => {
  const set = new CidSet();
  const cids: CID[] = [];
  for (let at = 0; at < 30_000; at += 1) cids.push(CID.createV1(raw, await multihash(sha256, Buffer.from(`${at}`))));
  for (const cid of cids) assert.ok(set.add(cid));
  for (const cid of cids) assert.ok(!set.add(cid) && set.has(cid));
  assert.equal(set.size, cids.length);
  assert.ok(!set.has(CID.createV1(raw, await multihash(sha256, Buffer.from("another")))));
});

test("twin forms are one member, another codec is another", async () => {
  const digest = await multihash(sha256, Buffer.from("x"));
  const set = new CidSet();
  set.add(CID.createV0(digest as never));
  assert.ok(set.has(CID.createV1(dagPb, digest)));
  assert.ok(!set.has(CID.createV1(raw, digest)));
});

test("identity digests that begin alike are told apart", () => {
  const inline = (text: string) => CID.createV1(raw, create(0, Buffer.from(text)));
  const set = new CidSet();
  set.add(inline(`${"a".repeat(40)}1`));
  assert.ok(!set.has(inline(`${"a".repeat(40)}2`)));
  assert.ok(!set.has(inline("")));
  set.add(CID.createV1(raw, create(0x12, new Uint8Array(32))));
  assert.ok(set.has(CID.createV1(raw, create(0x12, new Uint8Array(32)))));
});

test("the digest of a block under another hash function, or a part of it, is another member", () => {
  const digest = new Uint8Array(64).fill(7);
  const set = new CidSet();
  set.add(CID.createV1(dagPb, create(0x12, digest.subarray(0, 32))));
  assert.ok(!set.has(CID.createV1(dagPb, create(0x16, digest.subarray(0, 32)))));
  set.add(CID.createV1(dagPb, create(0x13, digest)));
  assert.ok(!set.has(CID.createV1(dagPb, create(0x13, digest.subarray(0, 48)))));
});

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, test } from "node:test";
import { CID } from "multiformats/cid";
import { raw } from "#node/formats/cid/codecs.ts";
import { hashCoded, hashesBy, hashNamed, identity, matches, multihash, sha256 } from "#node/formats/cid/hashes.ts";

/**
 * The CIDs that go-ipfs computes, by the name of the hash function; null if it cannot compute the
 * function.
 */
const known = JSON.parse(
  readFileSync(new URL("../../../../../fixtures/node/hash_functions.json", import.meta.url), "utf8"),
) as { readonly cids: Readonly<Record<string, string | null>> };
const bytes = Buffer.from("every hash function");

describe("the hash functions of go-ipfs compute the same CIDs here", () => {
  for (const [name, cid] of Object.entries(known.cids)) {
    test(name, async () => {
      const entry = hashNamed(name);
      assert.ok(entry);
      if (cid === null) return assert.rejects(multihash(entry, bytes), { code: "HASH_UNAVAILABLE" });
      const made = CID.createV1(raw, await multihash(entry, bytes));
      assert.equal(made.toString(), cid);
      assert.equal(await matches(made, bytes), true);
      if (entry.code !== 0) assert.equal(await matches(made, Buffer.from("another")), false);
    });
  }

  test("no other hash function may be stored", () => {
    const allowed = hashesBy(undefined).map(({ name }) => name);
    assert.deepEqual(allowed.sort(), Object.keys(known.cids).sort());
  });
});

test("blake3 is named only in Kubo's names, but is computed in both", async () => {
  assert.equal(hashNamed("blake3"), undefined);
  const blake3 = hashNamed("blake3", "multicodec");
  assert.ok(blake3);
  assert.equal(hashCoded(blake3.code), blake3);
  const block = Buffer.from("a block\n");
  const made = CID.createV1(raw, await multihash(blake3, block));
  assert.equal(made.toString(), "bafkr4iczjii5het4xtbsntbq2use44ld2wutvblhctonifrdpwpdt4zsme");
  assert.equal(await matches(made, block), true);
});

test("a requested length cuts every digest except an identity digest", async () => {
  const bytes = Buffer.from("hello");
  for (const length of [-1, 0, 3, 64])
    assert.deepEqual(Buffer.from((await multihash(identity, bytes, length)).digest), bytes);
  assert.equal((await multihash(sha256, bytes, 20)).digest.length, 20);
  await assert.rejects(multihash(sha256, bytes, 64), /too large for digest/);
});

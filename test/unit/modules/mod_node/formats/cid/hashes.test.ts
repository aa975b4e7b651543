import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, test } from "node:test";
import { CID } from "multiformats/cid";
import { raw } from "#node/formats/cid/codecs.ts";
import { hashFunctions, hashNamed, matches, multihash } from "#node/formats/cid/hashes.ts";

/** What the reference gives, by the name of the hash function; null where it computes none. */
const known = JSON.parse(
  readFileSync(new URL("../../../../../fixtures/node/hash_functions.json", import.meta.url), "utf8"),
) as { readonly cids: Readonly<Record<string, string | null>> };
const bytes = Buffer.from("every hash function");

describe("the hash functions of the reference", () => {
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

  test("are all that may be stored", () => {
    const allowed = hashFunctions.filter((entry) => entry.allowed).map(({ name }) => name);
    assert.deepEqual(allowed.sort(), Object.keys(known.cids).sort());
  });
});

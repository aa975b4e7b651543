/** The contract of every block store; the test of each implementation runs it. */
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { CID } from "multiformats/cid";
import { hashNamed, sha256 } from "#node/formats/cid/hashes.ts";
import { castCid } from "#node/formats/cid/text.ts";
import type { BlockStore } from "#node/storage/blockstore/store.ts";
import { as, contents, contentsOf, dagPb, hashedWith, keysOf, legacy, noise, raw, sample, samples } from "./samples.ts";

const closed = { code: "STORE_CLOSED" };

export function blockContract(name: string, open: (test: TestContext) => Promise<BlockStore>): void {
  const each = (title: string, run: (store: BlockStore) => Promise<void>) =>
    test(`${name}: ${title}`, async (t) => {
      const store = await open(t);
      try {
        await run(store);
      } finally {
        await store.close();
      }
    });

  each("a block that was put exists immediately, and after sync", async (store) => {
    const blocks = [...samples(20), sample(100, 0), sample(101, 1), sample(102, 300_000)];
    await store.put(blocks);
    for (const round of ["at once", "after sync"]) {
      for (const { cid, bytes } of blocks) {
        assert.deepEqual(await store.get(cid), bytes, round);
        assert.equal(await store.has(cid), true);
        assert.equal(await store.size(cid), bytes.length);
        assert.equal(await store.check(cid), true);
      }
      assert.equal((await store.stat()).blocks, blocks.length);
      await store.sync();
    }
    assert.deepEqual(await contents(store), contentsOf(blocks));
  });

  each("forms are known after the memory of their CIDs was reused, also that of a Buffer", async (store) => {
    const { cid, bytes } = sample(7);
    const forms = [cid, as(cid, dagPb)];
    const pool = forms.map((form) => Buffer.from(form.bytes));
    for (const each of pool) await store.put([{ cid: castCid(each), bytes }]);
    const reported = await store.forms(cid);
    await store.sync();
    for (const each of pool) each.fill(0);
    // Makes the texts from the multihashes, because a CID may have cached its text before the
    // memory was overwritten.
    const texts = (cids: readonly CID[]) => cids.map((each) => String(as(each, each.code))).sort();
    for (const known of [reported, await store.forms(cid)]) assert.deepEqual(texts(known), texts(forms));
  });

  each(
    "a block that is not written yet is returned as a copy when its memory will be reused, also that of a Buffer",
    async (store) => {
      const { cid, bytes } = sample(8);
      const pool = Buffer.from(bytes);
      let isReleased = false;
      await store.put([{ cid, bytes: pool, release: () => void (isReleased = true) }]);
      const got = await store.get(cid);
      await store.sync();
      if (isReleased) pool.fill(0);
      assert.deepEqual(Buffer.from(got as Uint8Array), Buffer.from(bytes));
    },
  );

  each("onNew reports each new form once, and none that was stored before", async (store) => {
    const one = sample(1);
    const other = sample(2, 5000);
    const reported: string[] = [];
    const options = { onNew: (cid: CID) => reported.push(cid.toString()) };
    await store.put([one], options);
    await store.put([one, other, { cid: as(other.cid, dagPb), bytes: other.bytes }, other], options);
    await store.put([one, other]);
    assert.deepEqual(reported, [one.cid, other.cid, as(other.cid, dagPb)].map(String));
    await store.delete([one.cid]);
    await store.sync();
    await store.put([other, one], options);
    assert.equal(reported.at(-1), one.cid.toString());
    assert.equal(reported.length, 4);
  });

  each("a block that was not put does not exist", async (store) => {
    await store.put(samples(3));
    const { cid } = sample(50);
    assert.equal(await store.get(cid), undefined);
    assert.equal(await store.has(cid), false);
    assert.equal(await store.size(cid), undefined);
    assert.equal(await store.check(cid), undefined);
    assert.deepEqual(await store.delete([cid]), [false]);
  });

  each("all forms of a multihash are returned for each of them", async (store) => {
    const { cid, bytes } = sample(2, 700);
    assert.deepEqual(await store.forms(cid), []);
    await store.put([{ cid: as(cid, dagPb), bytes }]);
    await store.put([{ cid: legacy(cid), bytes }]);
    for (const form of [cid, as(cid, dagPb), as(cid, 0x0129)]) {
      const texts = (await store.forms(form)).map(String).sort();
      assert.deepEqual(texts, [as(cid, dagPb), legacy(cid)].map(String).sort());
    }
    await store.delete([as(cid, dagPb), legacy(cid)]);
    assert.deepEqual(await store.forms(cid), []);
  });

  each("forms of one multihash are added and removed separately", async (store) => {
    const { cid, bytes } = sample(1, 5000);
    const forms = [cid, as(cid, dagPb), legacy(cid), as(cid, 0x0129)];
    for (const [at, form] of forms.entries()) {
      assert.equal(await store.has(form), false);
      await store.put([{ cid: form, bytes }]);
      assert.equal((await store.stat()).blocks, at + 1);
      if (at === 1) await store.sync();
    }
    for (const form of forms) assert.deepEqual(await store.get(form), bytes);
    assert.deepEqual(await keysOf(store), forms.map(String).sort());
    assert.deepEqual(await store.delete([cid, legacy(cid)]), [true, true]);
    assert.equal(await store.get(cid), undefined);
    assert.deepEqual(await store.get(as(cid, dagPb)), bytes);
    assert.deepEqual(await keysOf(store), [as(cid, dagPb), as(cid, 0x0129)].map(String).sort());
    assert.equal((await store.stat()).blocks, 2);
  });

  each("putting an existing block changes nothing", async (store) => {
    const blocks = samples(5, 10_000);
    await store.put(blocks);
    await store.sync();
    const before = await store.stat();
    await store.put([...blocks, ...blocks]);
    await Promise.all(Array.from({ length: 20 }, () => store.put(blocks)));
    await store.sync();
    assert.deepEqual(await store.stat(), before);
    assert.equal((await keysOf(store)).length, 5);
  });

  each("a thousand concurrent puts of one block store it once", async (store) => {
    const block = sample(7, 1000);
    await Promise.all(Array.from({ length: 1000 }, () => store.put([block]).then(() => store.sync())));
    assert.equal((await store.stat()).blocks, 1);
    assert.ok((await store.stat()).bytes < 200_000);
    assert.deepEqual(await keysOf(store), [block.cid.toString()]);
  });

  each("a deleted block is gone, and can be put again", async (store) => {
    const blocks = samples(10);
    await store.put(blocks);
    const gone = blocks.slice(0, 5).map(({ cid }) => cid);
    const [first] = gone;
    assert.deepEqual(await store.delete([...gone, first as CID]), [true, true, true, true, true, false]);
    assert.deepEqual(await contents(store), contentsOf(blocks.slice(5)));
    assert.deepEqual(await store.delete(gone), [false, false, false, false, false]);
    await store.put(blocks);
    await store.sync();
    assert.deepEqual(await contents(store), contentsOf(blocks));
    assert.equal((await store.stat()).blocks, 10);
  });

  each("blocks of many hash functions are stored and checked", async (store) => {
    const names = ["sha1", "sha2-512", "sha3-256", "dbl-sha2-256", "blake2b-256", "blake2s-256", "keccak-256"];
    const blocks = await Promise.all(
      names.map((hash, at) => hashedWith(hashNamed(hash) ?? assert.fail(hash), noise(500, at))),
    );
    await store.put(blocks);
    await store.sync();
    for (const { cid, bytes } of blocks) {
      assert.deepEqual(await store.get(cid), bytes);
      assert.equal(await store.check(cid), true);
    }
    const wrong = { cid: (await hashedWith(sha256, noise(10, 1))).cid, bytes: noise(10, 2) };
    await store.put([wrong]);
    await store.sync();
    assert.equal(await store.check(wrong.cid), false);
  });

  each("a listing has each form once, whatever changes meanwhile", async (store) => {
    const listing = samples(1200, 10);
    const passing = samples(1200, 10, 10_000);
    await store.put([...listing, ...passing.slice(0, 600)]);
    await store.sync();
    const seen: string[] = [];
    let step = 0;
    for await (const cid of store.keys()) {
      seen.push(cid.toString());
      step += 1;
      if (step % 100 === 0) await store.put(passing.slice(600 + step / 2, 650 + step / 2));
      if (step % 250 === 0) await store.delete(passing.slice(step / 10, step / 10 + 50).map(({ cid }) => cid));
    }
    assert.equal(new Set(seen).size, seen.length);
    const listed = new Set(seen);
    for (const { cid } of listing) assert.ok(listed.has(cid.toString()));
    const possible = new Set([...listing, ...passing].map(({ cid }) => cid.toString()));
    for (const key of seen) assert.ok(possible.has(key));
  });

  each("compaction preserves stored blocks", async (store) => {
    const blocks = samples(200, 1000);
    await store.put(blocks);
    await store.put([
      { ...(blocks[199] as (typeof blocks)[0]), cid: as((blocks[199] as (typeof blocks)[0]).cid, dagPb) },
    ]);
    await store.delete(blocks.slice(0, 150).map(({ cid }) => cid));
    const before = await contents(store);
    await store.compact();
    assert.deepEqual(await contents(store), before);
    assert.equal((await store.stat()).blocks, 51);
    await assert.rejects(store.compact(AbortSignal.abort()), { name: "AbortError" });
  });

  each("a CID that is a view of a larger array does not retain the array", async (store) => {
    const { cid, bytes } = sample(3);
    const large = new Uint8Array(10_000);
    large.set(cid.bytes, 500);
    const view = CID.decode(large.subarray(500, 500 + cid.bytes.length));
    await store.put([{ cid: view, bytes }]);
    large.fill(0);
    assert.equal(await store.has(CID.createV1(raw, cid.multihash)), true);
    assert.deepEqual(await keysOf(store), [cid.toString()]);
  });

  each("every call after close is refused, and close may be called again", async (store) => {
    const block = sample(1);
    await store.put([block, sample(2)]);
    const listing = store.keys()[Symbol.asyncIterator]();
    await listing.next();
    await store.close();
    await assert.rejects(store.get(block.cid), closed);
    await assert.rejects(store.has(block.cid), closed);
    await assert.rejects(store.size(block.cid), closed);
    await assert.rejects(store.put([block]), closed);
    await assert.rejects(store.sync(), closed);
    await assert.rejects(store.delete([block.cid]), closed);
    await assert.rejects(listing.next(), closed);
    await assert.rejects(store.keys()[Symbol.asyncIterator]().next(), closed);
    await assert.rejects(store.stat(), closed);
    await assert.rejects(store.compact(), closed);
    await assert.rejects(store.check(block.cid), closed);
    await store.close();
  });
}

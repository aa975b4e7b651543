import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { multibaseApi } from "#node/api/multibase.ts";
import { laterBases } from "#node/formats/cid/multibase.ts";
import { noise } from "#test/unit/modules/mod_node/storage/blockstore/samples.ts";

const { encode, decode } = multibaseApi();
/** Bases that are a power of two, and `identity`. They accept texts of any length. */
const long = laterBases.filter(({ name }) => /^(?:base(?:2|16|32|64|256)(?!\d)|identity)/.test(name));

test("long texts are encoded and decoded as the library does, whatever the length of their last group", async () => {
  for (const base of long) {
    for (const length of [0, 1, 3839, 3840, 3841, 8190, 20_003]) {
      const bytes = Buffer.from(noise(length, 7));
      const text = Buffer.from(await encode(bytes, base.name));
      if (base.name !== "identity") assert.equal(text.toString(), base.encoder.encode(bytes), `${base.name} ${length}`);
      assert.deepEqual(Buffer.from(await decode(text)), bytes, `${base.name} ${length}`);
    }
  }
});

test("line breaks in long texts are skipped, padding ends them, and errors name the position", async () => {
  const bytes = Buffer.from(noise(20_001, 7));
  for (const name of ["base64", "base64pad", "base32", "base32pad"]) {
    const text = Buffer.from(await encode(bytes, name)).toString();
    const broken = text.replace(/.{77}(?=.)/gs, "$&\r\n");
    assert.notEqual(broken, text);
    assert.deepEqual(Buffer.from(await decode(Buffer.from(`${broken}\n`))), bytes, name);
  }
  const text = `m${"A".repeat(40_000)}`;
  const illegal = (at: number) => ({ message: `failed to decode multibase: illegal base64 data at input byte ${at}` });
  await assert.rejects(decode(Buffer.from(`${text}!AAA`)), illegal(40_000));
  await assert.rejects(decode(Buffer.from(`M${"A".repeat(20_000)}=${"A".repeat(20_003)}`)), illegal(20_000));
  await assert.rejects(decode(Buffer.from(`${text}A`)), illegal(40_000));
  await assert.rejects(decode(Buffer.from(`0${"1".repeat(40_000)}2`)), ({ message }: Error) => message.length < 500);
});

test("the event loop runs while a long text is encoded or decoded", async (t) => {
  let turns = 0;
  const counting = new AbortController();
  t.after(() => counting.abort());
  const count = async () => {
    for (; !counting.signal.aborted; turns += 1) await nextTurn();
  };
  void count();
  const text = await encode(noise(1024 * 1024, 7), "base2");
  assert.ok(turns > 1, `it was written in ${turns} turns`);
  turns = 0;
  await decode(text);
  assert.ok(turns > 1, `it was read in ${turns} turns`);
});

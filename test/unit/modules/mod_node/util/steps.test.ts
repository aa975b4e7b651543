import assert from "node:assert/strict";
import { test } from "node:test";
import { CID } from "multiformats/cid";
import { sha256 } from "#node/formats/cid/hashes.ts";
import { makeCid } from "#node/formats/cid/make.ts";
import { decodeCbor, encodeCbor, type Value } from "#node/formats/dag_cbor/value.ts";
import { writeDagJson } from "#node/formats/dag_json/write.ts";
import { nodeJson, nodeJsonSteps } from "#node/formats/ipld/data_model.ts";
import { linksOf, linksWithTurns } from "#node/formats/ipld/links.ts";
import { atOnce, inSlices, type Steps, TextCollector } from "#node/util/async/steps.ts";

function* counted(count: number): Steps<number> {
  for (let at = 0; at < count; at += 1) yield;
  return count;
}

test("steps give what they return, at once or in slices", async () => {
  assert.equal(atOnce(counted(1000)), 1000);
  assert.equal(await inSlices(counted(1000)), 1000);
});

test("what steps throw is thrown", async () => {
  function* failing(): Steps<number> {
    yield;
    throw new Error("odd");
  }
  assert.throws(() => atOnce(failing()), { message: "odd" });
  await assert.rejects(inSlices(failing()), { message: "odd" });
});

test("others have their turns between slices", async () => {
  let turns = 0;
  let over = false;
  const tick = () => {
    turns += 1;
    if (!over) setImmediate(tick);
  };
  setImmediate(tick);
  function* slow(): Steps<void> {
    for (let left = 20; left > 0; left -= 1) {
      const until = performance.now() + 6;
      while (performance.now() < until);
      yield;
    }
  }
  await inSlices(slow());
  over = true;
  assert.ok(turns >= 19, `${turns}`);
});

test("text is collected in order", () => {
  const collector = new TextCollector();
  const pieces = Array.from({ length: 5000 }, (_, at) => `${at},`);
  for (const piece of pieces) collector.push(piece, ";");
  assert.equal(collector.text, pieces.map((piece) => `${piece};`).join(""));
});

test("large nodes have the links and the JSON in slices that they have at once", async () => {
  const cid = CID.parse("QmUNLLsPACCz1vLxQVkXqqLX5R1X345qqfHbsf67hvA3Nn");
  const value: Value = Array.from(
    { length: 4000 },
    (_, at) =>
      new Map<string, Value>([
        ["a", BigInt(at)],
        ["b", cid],
      ]),
  );
  for (const [code, bytes] of [
    [0x71, encodeCbor(value)],
    [0x0129, writeDagJson(value)],
  ] as const) {
    const own = makeCid(1, code, { ...cid.multihash, code: sha256.code });
    const links = linksWithTurns(own, bytes);
    assert.ok(links instanceof Promise);
    assert.deepEqual((await links).map(String), linksOf(own, bytes).map(String));
    assert.equal((await inSlices(nodeJsonSteps(own, bytes))).text, nodeJson(own, bytes).text);
  }
  const small = encodeCbor(decodeCbor(encodeCbor([cid])));
  assert.equal(String(linksWithTurns(makeCid(1, 0x71, cid.multihash), small)), String(cid), "small ones at once");
});

test("a fault of a large node is the same in slices", async () => {
  const broken = new Uint8Array(100_000).fill(0x81);
  const cid = CID.createV1(0x71, CID.parse("QmUNLLsPACCz1vLxQVkXqqLX5R1X345qqfHbsf67hvA3Nn").multihash);
  const found = linksWithTurns(cid, broken);
  assert.ok(found instanceof Promise);
  await assert.rejects(found, { message: "unexpected EOF" });
  assert.throws(() => linksOf(cid, broken), { message: "unexpected EOF" });
});

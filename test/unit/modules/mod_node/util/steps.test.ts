import assert from "node:assert/strict";
import { test } from "node:test";
import { CID } from "multiformats/cid";
import { objectOf, readObjectJson } from "#node/content/dag/object/json.ts";
import { readObjectXml } from "#node/content/dag/object/xml.ts";
import { sha256 } from "#node/formats/cid/hashes.ts";
import { makeCid } from "#node/formats/cid/make.ts";
import { decodeCbor, type Value } from "#node/formats/dag_cbor/value.ts";
import { encodeCbor } from "#node/formats/dag_cbor/write.ts";
import { readPbJson } from "#node/formats/dag_json/dag_pb_json.ts";
import { writeDagJson } from "#node/formats/dag_json/write.ts";
import { nodeJson, nodeJsonSteps } from "#node/formats/ipld/data_model.ts";
import { linksOf, linksWithTurns } from "#node/formats/ipld/links.ts";
import { atOnce, inSlices, type Steps, sortedSteps, TextCollector } from "#node/util/async/steps.ts";

function* counted(count: number): Steps<number> {
  for (let at = 0; at < count; at += 1) yield;
  return count;
}

test("steps return the same value at once and in slices", async () => {
  assert.equal(atOnce(counted(1000)), 1000);
  assert.equal(await inSlices(counted(1000)), 1000);
});

test("atOnce and inSlices throw the error of the steps", async () => {
  function* failing(): Steps<number> {
    yield;
    throw new Error("odd");
  }
  assert.throws(() => atOnce(failing()), { message: "odd" });
  await assert.rejects(inSlices(failing()), { message: "odd" });
});

test("the event loop has its turns between slices", async () => {
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

/** Runs steps; returns their result and their number. */
function counting<T>(steps: Steps<T>): readonly [result: T, count: number] {
  for (let count = 1; ; count += 1) {
    const next = steps.next();
    if (next.done === true) return [next.value, count];
  }
}

test("many items are sorted in steps, and equal ones keep their order", () => {
  const items = Array.from({ length: 20_001 }, (_, at) => ({ key: (at * 7919) % 1000, at }));
  const byKey = (one: { key: number }, other: { key: number }) => one.key - other.key;
  const [sorted, count] = counting(sortedSteps(items, byKey));
  assert.deepEqual(sorted, items.toSorted(byKey));
  assert.ok(count > 20, `${count}`);
  assert.deepEqual(counting(sortedSteps([3, 1, 2], (one, other) => one - other)), [[1, 2, 3], 1]);
});

test("JSON and XML of `object put` are read in steps", () => {
  const cid = "QmUNLLsPACCz1vLxQVkXqqLX5R1X345qqfHbsf67hvA3Nn";
  const links = (link: string) => Array.from({ length: 5000 }, () => link);
  const json = `{"Links":[${links(`{"Name":"a","Hash":"${cid}"}`)}],"Data":"a"}`;
  const xml = `<Node>${links(`<Links><Name>a</Name><Hash>${cid}</Hash></Links>`).join("")}<Data>a</Data></Node>`;
  for (const [what, steps] of Object.entries({
    json: readObjectJson(Buffer.from(json)),
    xml: readObjectXml(Buffer.from(xml)),
  })) {
    const [draft, count] = counting(steps);
    assert.equal(draft.links.length, 5000, what);
    assert.ok(count > 20, `${what}: ${count}`);
    const [node, more] = counting(objectOf(draft, "text"));
    assert.equal(node.links.length, 5000, what);
    assert.ok(more > 4, `${what}: ${more}`);
  }
  const pb = `{"links":[${links(`{"Name":"a","Cid":{"/":"${cid}"}}`)}],"x":[${links("{}")}]}`;
  const [node, count] = counting(readPbJson(Buffer.from(pb)));
  assert.equal(node.links.length, 5000);
  assert.ok(count > 20, `${count}`);
});

test("a long text of XML and the attributes of one element are read in steps", () => {
  const data = "a&lt;&#98;".repeat(30_000);
  const attributes = " a='b'".repeat(5000);
  const [draft, count] = counting(readObjectXml(Buffer.from(`<Node${attributes}><Data>${data}</Data></Node>`)));
  assert.equal(Buffer.from(draft.data).toString(), "a<b".repeat(30_000));
  assert.ok(count > 6, `${count}`);
});

test("large nodes yield the same links and JSON in slices as at once", async () => {
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
  assert.equal(
    String(linksWithTurns(makeCid(1, 0x71, cid.multihash), small)),
    String(cid),
    "small nodes are read at once",
  );
});

test("a malformed large node causes the same error in slices", async () => {
  const broken = new Uint8Array(100_000).fill(0x81);
  const cid = CID.createV1(0x71, CID.parse("QmUNLLsPACCz1vLxQVkXqqLX5R1X345qqfHbsf67hvA3Nn").multihash);
  const found = linksWithTurns(cid, broken);
  assert.ok(found instanceof Promise);
  await assert.rejects(found, { message: "unexpected EOF" });
  assert.throws(() => linksOf(cid, broken), { message: "unexpected EOF" });
});

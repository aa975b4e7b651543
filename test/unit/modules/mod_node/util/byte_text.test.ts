import assert from "node:assert/strict";
import { test } from "node:test";
import { parseCid } from "#node/formats/cid/text.ts";
import { compareNames, decodePb, encodePb } from "#node/formats/dag_pb/dag_pb.ts";
import { byteLength, byteText, textBytes } from "#node/util/byte_text.ts";
import { goJson, printable, quote } from "#node/util/go/text.ts";
import { seeded } from "#test/support/seeded.ts";

const cid = parseCid("QmUNLLsPACCz1vLxQVkXqqLX5R1X345qqfHbsf67hvA3Nn");
const binary = (text: string) => Buffer.from(text, "latin1");

/** Names of random bytes, many of which are nearly valid UTF-8. */
function* names(count: number): Generator<Buffer> {
  const random = seeded(7);
  const parts = ["a", "é", "😀", "\ufffd", "\xe9", "\xc3", "\xa9", "\xf0\x9f", "\xed\xb2\x80", "\xff"];
  const bytes = parts.map((part) => (part.charCodeAt(0) < 0x100 && part !== "é" ? binary(part) : Buffer.from(part)));
  for (let at = 0; at < count; at += 1) {
    const picked = Array.from(
      { length: 1 + Math.floor(random() * 6) },
      () => bytes[Math.floor(random() * bytes.length)],
    );
    yield Buffer.concat(picked as Buffer[]);
  }
}

test("every name keeps its bytes, and different names have different texts", () => {
  const seen = new Map<string, string>();
  for (const name of names(3000)) {
    const text = byteText(name);
    assert.ok(textBytes(text).equals(name), name.toString("hex"));
    assert.equal(byteLength(text), name.length);
    assert.equal(seen.get(text) ?? name.toString("hex"), name.toString("hex"));
    seen.set(text, name.toString("hex"));
  }
});

test("texts sort as their bytes do", () => {
  const all = [...names(300)];
  for (const one of all) {
    for (const other of all.slice(0, 60)) {
      const order = Math.sign(compareNames(byteText(one), byteText(other)));
      assert.equal(order, Buffer.compare(one, other), `${one.toString("hex")} ${other.toString("hex")}`);
    }
  }
});

test("a directory block with such names is unchanged after decoding and encoding", () => {
  const distinct = [...new Map([...names(200)].map((name) => [name.toString("hex"), byteText(name)])).values()];
  const bytes = encodePb({ links: distinct.map((name) => ({ name, size: 1, cid })), data: undefined });
  const { links } = decodePb(bytes);
  assert.deepEqual(new Set(links.map(({ name }) => name)), new Set(distinct));
  assert.ok(Buffer.from(encodePb({ links, data: undefined })).equals(bytes));
});

test("JSON and quoted texts show such bytes as the reference does", () => {
  const name = byteText(binary("caf\xe9\xc3"));
  assert.equal(goJson({ Name: name }), '{"Name":"caf\\ufffd\\ufffd"}');
  assert.equal(JSON.parse(goJson([`${name}${"x".repeat(70_000)}`]))[0].slice(0, 6), "caf\ufffd\ufffdx");
  assert.equal(goJson("\\ud800 \ud83d\ude00"), '"\\\\ud800 \ud83d\ude00"');
  assert.equal(quote(name), '"caf\\xe9\\xc3"');
  assert.equal(printable(name), name);
  assert.equal(printable(`${name}\n`), "caf\\xe9\\xc3\\n");
});

import assert from "node:assert/strict";
import { test } from "node:test";
import * as dagPb from "@ipld/dag-pb";
import { CID } from "multiformats/cid";
import { hashNamed, multihash } from "#node/formats/cid/hashes.ts";
import {
  compareNames,
  decodePb,
  encodePb,
  type PbLink,
  type PbNode,
  parsePb,
  pbLinks,
} from "#node/formats/dag_pb/dag_pb.ts";
import { scanNode, scanPages } from "#node/formats/dag_pb/scan_links.ts";
import { NodeError } from "#node/util/errors.ts";

const sha256 = hashNamed("sha2-256") as NonNullable<ReturnType<typeof hashNamed>>;
const cidOf = async (text: string) => CID.createV0((await multihash(sha256, Buffer.from(text))) as never);
const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString("hex");

test("a node is encoded as @ipld/dag-pb encodes it", async () => {
  const cid = await cidOf("child");
  const links: PbLink[] = [
    { name: "b", size: 2 ** 40, cid: cid.toV1() },
    { name: "", size: 0, cid },
    { name: "a\u{1F600}", size: 300, cid },
  ];
  const data = Buffer.from("payload");
  const expected = dagPb.encode(
    dagPb.prepare({ Data: data, Links: links.map(({ name, size, cid }) => ({ Name: name, Tsize: size, Hash: cid })) }),
  );
  assert.equal(hex(encodePb({ data, links })), hex(expected));
});

test("an empty node has no bytes, and empty data is omitted", () => {
  assert.equal(encodePb({ data: undefined, links: [] }).length, 0);
  assert.equal(encodePb({ data: new Uint8Array(), links: [] }).length, 0);
  assert.deepEqual(decodePb(new Uint8Array()), { data: undefined, links: [] });
});

test("an encoded node is decoded again, with its links sorted by name", async () => {
  const cid = await cidOf("x");
  const names = ["b", "", "aa", "a", "\u{10000}", "\uffff"];
  const node = decodePb(encodePb({ data: Buffer.from("d"), links: names.map((name, size) => ({ name, size, cid })) }));
  assert.deepEqual(
    node.links.map(({ name }) => name),
    ["", "a", "aa", "b", "\uffff", "\u{10000}"],
  );
  assert.equal(Buffer.from(node.data ?? []).toString(), "d");
});

test("names are sorted by their bytes", () => {
  const names = ["\u{10FFFF}", "\uD7FF", "\uE000", "é", "e", "", "ee", "\uffff", "a\u{10000}", "a\uffff"];
  const bytewise = names.toSorted((one, other) => Buffer.compare(Buffer.from(one), Buffer.from(other)));
  assert.deepEqual(names.toSorted(compareNames), bytewise);
});

test("a node with data before links, or with unsorted links, is read as well", async () => {
  const cid = await cidOf("x");
  const link = (name: string) => {
    const whole = encodePb({ data: undefined, links: [{ name, size: 1, cid }] });
    return Buffer.from(whole);
  };
  const bytes = Buffer.concat([Buffer.from([0x0a, 1, 7]), link("z"), link("a")]);
  const node = decodePb(bytes);
  assert.deepEqual(
    node.links.map(({ name }) => name),
    ["a", "z"],
  );
  assert.deepEqual([...(node.data ?? [])], [7]);
});

test("truncated and malformed messages throw a NodeError and are never read past their end", async () => {
  const cid = await cidOf("x");
  const whole = encodePb({ data: Buffer.from("data"), links: [{ name: "name", size: 1, cid }] });
  for (let length = 1; length < whole.length; length += 1) {
    const cut = whole.subarray(0, length);
    try {
      decodePb(cut);
    } catch (error) {
      assert.ok(error instanceof NodeError, `cut at ${length}: ${error}`);
    }
  }
  assert.throws(() => decodePb(Buffer.from([0x12, 0x7f, 1])), NodeError);
  assert.throws(() => decodePb(Buffer.from([0x0a, ...Array(11).fill(0xff)])), NodeError);
});

/** Returns the CIDs as text, or the error text. */
function outcome(links: () => readonly CID[]): string {
  try {
    return links().join();
  } catch (error) {
    assert.ok(error instanceof NodeError);
    return error.message;
  }
}

test("the fast reader and the full decoder agree on a node, whichever byte of it changes", async () => {
  const [cid] = await Promise.all(["a"].map(cidOf));
  const names = ["", "a", "a name of more than sixteen", "ü", "\ufeffx", "\u{1f600}"];
  const links = names.map((name, at) => ({
    name,
    size: 10 ** (at * 3),
    cid: at % 2 ? (cid as CID).toV1() : (cid as CID),
  }));
  const shown = (read: () => PbNode) => {
    try {
      const { data, links } = read();
      return [data && hex(data), ...links.map(({ name, size, cid }) => [name, size, String(cid)])];
    } catch (error) {
      assert.ok(error instanceof NodeError);
      return error.message.replace(/^failed to decode Protocol Buffers: /, "");
    }
  };
  for (const data of [undefined, Buffer.from("some data")]) {
    const node = encodePb({ data, links });
    for (const [at, byte] of node.entries()) {
      for (const other of [byte, 0, 1, byte ^ 1, byte ^ 2, byte ^ 8, byte ^ 0x80, 0xff]) {
        const bytes = node.slice();
        bytes[at] = other;
        const expected = shown(() => parsePb(bytes));
        assert.deepEqual(
          shown(() => decodePb(bytes)),
          expected,
          hex(bytes),
        );
        assert.deepEqual(
          shown(() => decodePb(bytes.subarray(0, at))),
          shown(() => parsePb(bytes.subarray(0, at))),
        );
        const paged = scanPages(bytes, 2);
        assert.deepEqual(paged && { data: paged.data, links: [...paged.pages].flat() }, scanNode(bytes));
      }
    }
  }
});

test("reading only the links gives the links of the whole node, whichever byte of it changes", async () => {
  const cids = await Promise.all(["a", "b", "c", "d"].map(cidOf));
  const links = cids.map((cid, at) => ({ name: `n${at}`, size: 10 ** (at * 4), cid: at % 2 === 0 ? cid : cid.toV1() }));
  const node = encodePb({ data: Buffer.from("some data"), links });
  assert.equal(pbLinks(node).join(), cids.map((cid, at) => (at % 2 === 0 ? cid : cid.toV1())).join());
  // A node with the second link before the first, and the data before both.
  const first = node.indexOf(0x12, 2 + (node[1] as number));
  const swapped = Buffer.concat([node.subarray(first), node.subarray(0, first)]);
  const changed = [new Uint8Array(), swapped, ...Array.from(node, (_, length) => node.subarray(0, length))];
  for (const [at, byte] of node.entries()) {
    for (const other of [0, 1, byte ^ 1, byte ^ 2, byte ^ 8, byte ^ 0x80, 0xff]) {
      const bytes = node.slice();
      bytes[at] = other;
      changed.push(bytes);
    }
  }
  const reasons = new Set<string>();
  for (const bytes of changed) {
    const whole = outcome(() => decodePb(bytes).links.map(({ cid }) => cid));
    assert.equal(
      outcome(() => pbLinks(bytes)),
      whole,
      hex(bytes),
    );
    reasons.add(whole);
  }
  assert.ok(reasons.size > 100, `${reasons.size} outcomes`);
});

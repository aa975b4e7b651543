/** Mentions that are sorted on the disk on their way to the index: finding and merging them. */
import assert from "node:assert/strict";
import { hash } from "node:crypto";
import { test } from "node:test";
import {
  type ChunkTable,
  type Mention,
  MentionBatch,
  type MentionRun,
  mentionsOf,
  merged,
} from "#node/storage/shared/segments/mention_runs.ts";

const sha256 = (text: string) => Buffer.concat([Buffer.from("1220", "hex"), hash("sha256", text, "buffer")]);
const mention = (multihash: Uint8Array, source: number): Mention => ({
  multihash,
  form: source % 3 === 0 ? 0 : 86,
  offset: source * 1000,
  length: 2 ** 20 - source,
  source,
});

class Runs {
  readonly runs: MentionRun[] = [];
  readonly #chunks: Uint8Array[] = [];
  readonly table: ChunkTable = { view: (chunk) => this.#copy(chunk), copy: (chunk) => this.#copy(chunk) };

  add(mentions: readonly Mention[]): void {
    const batch = new MentionBatch();
    for (const each of mentions) batch.add(each);
    const made = batch.chunks();
    this.runs.push({ firstChunk: this.#chunks.length, keys: Uint32Array.from(made, ({ key }) => key) });
    this.#chunks.push(...made.map(({ bytes }) => bytes));
  }

  #copy(chunk: number): Buffer {
    return Buffer.from(this.#chunks[chunk] as Uint8Array);
  }
}

const inOrder = (mentions: readonly Mention[]) => mentions.toSorted((one, other) => one.source - other.source);
const plain = (mentions: readonly Mention[]) =>
  mentions.map((each) => ({ ...each, multihash: Buffer.from(each.multihash).toString("hex") }));

/** Multihashes of several functions, some with short digests, and many with the same beginning. */
const multihashes = [
  ...Array.from({ length: 3000 }, (_, at) => sha256(`${at}`)),
  ...Array.from({ length: 500 }, (_, at) => {
    const same = sha256(`same ${at}`);
    same.fill(7, 2, 6);
    return same;
  }),
  ...Array.from({ length: 200 }, (_, at) => Buffer.from([0x12, 0x01, at])),
  ...Array.from({ length: 200 }, (_, at) => Buffer.from([0xa0, 0xe4, 0x02, 0x04, 1, 2, 3, at])),
];

function filled(): { readonly runs: Runs; readonly all: readonly Mention[] } {
  const runs = new Runs();
  const all: Mention[] = [];
  for (let run = 0; run < 7; run += 1) {
    const part = multihashes.filter((_, at) => at % 7 === run || at % 11 === run);
    const mentions = part.map((multihash, at) => mention(multihash, run * 10_000 + at));
    runs.add(mentions);
    all.push(...mentions);
  }
  return { runs, all };
}

test("all mentions of a multihash are found in all runs, and no others", () => {
  const { runs, all } = filled();
  const expected = Map.groupBy(all, ({ multihash }) => Buffer.from(multihash).toString("hex"));
  for (const multihash of multihashes) {
    const found = mentionsOf(multihash, runs.runs, runs.table);
    assert.deepEqual(plain(inOrder(found)), plain(expected.get(multihash.toString("hex")) ?? []));
  }
  for (const strange of [
    sha256("strange"),
    Buffer.from("120107ff", "hex"),
    Buffer.from("1201", "hex"),
    Buffer.alloc(0),
  ])
    assert.deepEqual(mentionsOf(strange, runs.runs, runs.table), []);
});

test("runs are merged to groups of one multihash each, in the order of the log", () => {
  const { runs, all } = filled();
  const seen = new Map<string, readonly Mention[]>();
  for (const group of merged(runs.runs, runs.table)) {
    const names = new Set(group.map(({ multihash }) => Buffer.from(multihash).toString("hex")));
    assert.equal(names.size, 1);
    const [name = ""] = names;
    assert.ok(!seen.has(name));
    seen.set(name, group);
  }
  const expected = Map.groupBy(all, ({ multihash }) => Buffer.from(multihash).toString("hex"));
  assert.equal(seen.size, expected.size);
  for (const [name, group] of seen) assert.deepEqual(plain(group), plain(expected.get(name) ?? []));
});

test("multihashes of one function are returned in their own order", () => {
  const runs = new Runs();
  const some = Array.from({ length: 2000 }, (_, at) => sha256(`${at}`));
  for (let run = 0; run < 4; run += 1)
    runs.add(some.filter((_, at) => at % 4 === run).map((multihash, at) => mention(multihash, at)));
  const come = [...merged(runs.runs, runs.table)].map(([first]) => Buffer.from(first?.multihash ?? []));
  assert.deepEqual(come, come.toSorted(Buffer.compare));
});

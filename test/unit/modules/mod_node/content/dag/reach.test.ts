import assert from "node:assert/strict";
import { test } from "node:test";
import { type Mark, Reach } from "#node/content/dag/reach.ts";

const mebibyte = 2 ** 20;
const usual = { bytes: 4 * mebibyte, blocks: 256 };

interface Line {
  /** Milliseconds from a request to its response. */
  readonly far: number;
  /** Bytes per millisecond. */
  readonly rate: number;
}

interface Coming {
  readonly at: number;
  readonly mark: Mark;
}

/** A reader that always requests as much ahead as is worth it, with a clock of its own. */
class Reader {
  readonly #block: number;
  #now = 0;
  #isFreeAt = 0;
  readonly #reach = new Reach(usual, () => this.#now);
  readonly #coming: Coming[] = [];

  constructor(block: number) {
    this.#block = block;
  }

  get reach(): number {
    return this.#reach.times;
  }

  /** Reads that many blocks. @param pause milliseconds that the reader needs for each */
  read(count: number, { far, rate }: Line, pause = 0): this {
    const enough = Math.min(usual.bytes / this.#block, usual.blocks);
    for (let left = count; left > 0; left -= 1) {
      while (this.#coming.length < enough * this.#reach.times) {
        this.#isFreeAt = Math.max(this.#isFreeAt, this.#now + far) + this.#block / rate;
        this.#coming.push({ at: this.#isFreeAt, mark: this.#reach.mark() });
      }
      const { at, mark } = this.#coming.shift() as Coming;
      this.#now = Math.max(this.#now, at);
      this.#reach.received(this.#block, mark);
      this.#now += pause;
    }
    return this;
  }

  /** Lets that many milliseconds pass without any data. */
  stall(milliseconds: number): this {
    this.#isFreeAt += milliseconds;
    return this;
  }
}

const block = 256 * 1024;
const perMs = mebibyte / 1000;
const long: Line = { far: 60, rate: 150 * perMs };

test("readahead from a fast distant peer is large enough that the line is never idle", () => {
  const onTheWay = (long.far * long.rate) / usual.bytes;
  const { reach } = new Reader(block).read(200, long);
  assert.ok(reach >= 2 * onTheWay, `${reach} of ${onTheWay}`);
});

test("readahead of small blocks depends on their number", () => {
  const { reach } = new Reader(4096).read(4000, { far: 60, rate: 40 * perMs });
  assert.ok(reach > 4, "600 of them are on the way");
});

test("one pause of the line does not change the readahead", () => {
  const reader = new Reader(block).read(200, long);
  const { reach } = reader;
  assert.ok(reader.stall(200).read(100, long).reach >= reach * 0.9);
});

test("readahead returns to the base amount for a line that becomes slow, and for a reader that does", () => {
  assert.equal(new Reader(block).read(200, long).read(200, { far: 60, rate: 5 * perMs }).reach, 1);
  assert.equal(new Reader(block).read(200, long).read(400, long, 100).reach, 1);
});

test("readahead from a nearby peer is the base amount", () => {
  assert.equal(new Reader(block).read(400, { far: 1, rate: 1000 * perMs }).reach, 1);
  assert.equal(new Reader(block).read(400, { far: 1, rate: 20 * perMs }).reach, 1);
});

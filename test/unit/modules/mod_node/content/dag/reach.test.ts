import assert from "node:assert/strict";
import { test } from "node:test";
import { type Mark, Reach } from "#node/content/dag/reach.ts";

const mebibyte = 2 ** 20;
const usual = { bytes: 4 * mebibyte, blocks: 256 };

interface Line {
  /** Milliseconds from a question to its answer. */
  readonly far: number;
  /** Bytes a millisecond. */
  readonly rate: number;
}

interface Coming {
  readonly at: number;
  readonly mark: Mark;
}

/**
 * A reader that always has as much on its way as is worth it, and a clock that stands still
 * meanwhile.
 */
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

  /** Takes so many blocks. @param pause milliseconds that the reader takes for each */
  read(count: number, { far, rate }: Line, pause = 0): this {
    const enough = Math.min(usual.bytes / this.#block, usual.blocks);
    for (let left = count; left > 0; left -= 1) {
      while (this.#coming.length < enough * this.#reach.times) {
        this.#isFreeAt = Math.max(this.#isFreeAt, this.#now + far) + this.#block / rate;
        this.#coming.push({ at: this.#isFreeAt, mark: this.#reach.mark() });
      }
      const { at, mark } = this.#coming.shift() as Coming;
      this.#now = Math.max(this.#now, at);
      this.#reach.came(this.#block, mark);
      this.#now += pause;
    }
    return this;
  }

  /** Nothing comes for so long. */
  stall(milliseconds: number): this {
    this.#isFreeAt += milliseconds;
    return this;
  }
}

const block = 256 * 1024;
const perMs = mebibyte / 1000;
const long: Line = { far: 60, rate: 150 * perMs };

test("of what comes quickly from far away so much is worth asking for that the line is never idle", () => {
  const onTheWay = (long.far * long.rate) / usual.bytes;
  const { reach } = new Reader(block).read(200, long);
  assert.ok(reach >= 2 * onTheWay, `${reach} of ${onTheWay}`);
});

test("small blocks count by their number", () => {
  const { reach } = new Reader(4096).read(4000, { far: 60, rate: 40 * perMs });
  assert.ok(reach > 4, "600 of them are on the way");
});

test("a line that stands still for once changes nothing", () => {
  const reader = new Reader(block).read(200, long);
  const { reach } = reader;
  assert.ok(reader.stall(200).read(100, long).reach >= reach * 0.9);
});

test("a line that becomes slow, and a reader that does, ask for the usual again", () => {
  assert.equal(new Reader(block).read(200, long).read(200, { far: 60, rate: 5 * perMs }).reach, 1);
  assert.equal(new Reader(block).read(200, long).read(400, long, 100).reach, 1);
});

test("what is near is there as soon as it is asked for", () => {
  assert.equal(new Reader(block).read(400, { far: 1, rate: 1000 * perMs }).reach, 1);
  assert.equal(new Reader(block).read(400, { far: 1, rate: 20 * perMs }).reach, 1);
});

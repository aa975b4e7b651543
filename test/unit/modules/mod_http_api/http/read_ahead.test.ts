/**
 * Tests of response lines that are produced ahead of their reader: their order, how many may wait,
 * and how they end.
 */
import assert from "node:assert/strict";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { ReadAhead, type ReadAheadOptions } from "#modules/mod_http_api/http/read_ahead.ts";
import { eventually } from "#test/support/eventually.ts";

const LIMITS = { maxMemory: 64, maxFile: 512 };

describe("lines produced ahead of their reader", () => {
  let folder: string;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "modhost-ahead-"));
  });
  after(() => rm(folder, { recursive: true, force: true }));

  /** Counts what was read from the source. */
  function ahead(count: number, deps: Partial<ReadAheadOptions> = {}) {
    const made = { lines: 0, isOver: false };
    async function* lines() {
      try {
        for (; made.lines < count; ) {
          made.lines += 1;
          yield `line ${made.lines}\n`;
        }
      } finally {
        made.isOver = true;
      }
    }
    const reader = new ReadAhead(lines(), {
      folder: () => join(folder, "scratch"),
      isUploading: () => true,
      ...LIMITS,
      ...deps,
    });
    return { made, reader };
  }

  async function rest(reader: ReadAhead): Promise<string> {
    let text = "";
    for (let next = await reader.next(); next.done !== true; next = await reader.next()) text += next.value;
    return text;
  }

  const whole = (count: number) => Array.from({ length: count }, (_, at) => `line ${at + 1}\n`).join("");

  test("lines are made ahead while the body arrives, until the file is full; then the reader sets the pace", async () => {
    const { made, reader } = ahead(1000);
    const first = await reader.next();
    await eventually("the file is full", () => made.lines > LIMITS.maxFile / "line 100\n".length);
    for (let turn = 0; turn < 50; turn += 1) await nextTurn();
    const bound = (LIMITS.maxFile + 3 * LIMITS.maxMemory) / "line 1\n".length;
    assert.ok(made.lines < bound, `${made.lines}`);
    assert.equal(`${first.value}${await rest(reader)}`, whole(1000));
  });

  test("lines wait for their reader once the body is complete", async () => {
    let isComing = true;
    const { made, reader } = ahead(1000, { isUploading: () => isComing });
    isComing = false;
    const first = await reader.next();
    for (let turn = 0; turn < 50; turn += 1) await nextTurn();
    assert.ok(made.lines < 5, `${made.lines}`);
    assert.equal(`${first.value}${await rest(reader)}`, whole(1000));
  });

  test("lines leave no file behind, and none is created for a reader that keeps up", async () => {
    await rm(join(folder, "scratch"), { recursive: true, force: true });
    const slow = ahead(200);
    await rest(slow.reader);
    const { reader, made } = ahead(200);
    await reader.next();
    await eventually("more than 40 lines are made", () => made.lines > 40);
    await reader.return();
    assert.equal(made.isOver, true);
    assert.deepEqual(await readdir(join(folder, "scratch")), []);
  });

  test("lines are delivered before the error that ends them", async () => {
    async function* failing() {
      for (let at = 0; at < 100; at += 1) yield "x".repeat(16);
      throw new Error("the body is cut");
    }
    const reader = new ReadAhead(failing(), { folder: () => folder, isUploading: () => true, ...LIMITS });
    let length = 0;
    await assert.rejects(async () => {
      for (let next = await reader.next(); next.done !== true; next = await reader.next()) length += next.value.length;
    }, /the body is cut/);
    assert.equal(length, 1600);
  });
});

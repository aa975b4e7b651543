/**
 * Reads malicious Pebble files, whose checksums are right and whose lengths are meant to do harm.
 */
import assert from "node:assert/strict";
import { open } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { DatabaseDamaged, maskedCrc } from "#node/migration/lsm/fields.ts";
import { rowsOf } from "#node/migration/lsm/rows.ts";
import { PebbleDatabase } from "#node/migration/pebble/database.ts";
import { journalRecords } from "#node/migration/pebble/journal.ts";
import { type Changes, readLog } from "#node/migration/pebble/log.ts";
import { blockFormat } from "#node/migration/pebble/table_blocks.ts";
import { inSlices } from "#node/util/async/steps.ts";
import { unpack } from "#test/support/unpack.ts";
import { emptyFolder } from "#test/unit/modules/mod_node/storage/repo/support.ts";

const rows = blockFormat(2);
const columns = blockFormat(7);
const uint = 2;
const bytes = 3;

/** Builds a block whose columns take no bytes, regardless of the number of rows. */
function emptyColumns(types: readonly number[], count: number, ownHead?: number): Buffer {
  const head = Buffer.alloc(ownHead === undefined ? 0 : 4);
  if (ownHead !== undefined) head.writeUInt32LE(ownHead);
  const block = Buffer.concat([head, Buffer.alloc(7 + types.length * 5 + 16)]);
  block[head.length] = 1;
  block.writeUInt16LE(types.length, head.length + 1);
  block.writeUInt32LE(count, head.length + 3);
  for (const [at, type] of types.entries()) {
    block[head.length + 7 + at * 5] = type;
    block.writeUInt32LE(block.length - 2, head.length + 8 + at * 5);
  }
  return block;
}

test("blocks that claim to have billions of rows count as damaged", () => {
  assert.throws(() => columns.index(emptyColumns([bytes, uint, uint], 2 ** 30)), DatabaseDamaged);
  assert.throws(() => [...columns.meta(emptyColumns([bytes, bytes], 2 ** 30))], DatabaseDamaged);
  assert.throws(() => columns.tombstones(emptyColumns([bytes, uint, uint], 1, 2 ** 31)), DatabaseDamaged);
});

/** Builds a block with one long key, and rows that share all of it. */
function repeated(length: number, count: number): Buffer {
  const varint = (value: number) => [(value & 0x7f) | 0x80, ((value >> 7) & 0x7f) | 0x80, value >> 14];
  const first = Buffer.concat([Buffer.from([0, ...varint(length), 0]), Buffer.alloc(length, "k")]);
  const row = Buffer.from([...varint(length), 0, 0]);
  return Buffer.concat([first, ...Array.from({ length: count }, () => row), Buffer.alloc(4)]);
}

test("rows that share one long key do not exhaust the memory", () => {
  assert.equal([...rowsOf(repeated(100, 1000))].length, 1001);
  assert.throws(() => rows.entries(repeated(100_000, 20_000)), { message: /more keys than its size allows/ });
});

test("a log full of invalid chunks is read in bounded time, with pauses", async () => {
  // A chunk with a wrong checksum may begin at each byte.
  const log = Buffer.alloc(4 * 1024 * 1024, 1);
  let pauses = 0;
  for (const record of journalRecords("000001.log", log, { log: undefined, mayEndEarly: true })) {
    assert.equal(record, undefined);
    pauses += 1;
  }
  assert.ok(pauses > 1000 && pauses < 40_000, `${pauses}`);
});

test("the event loop has its turns while a long log is read", async (t) => {
  const data = Buffer.alloc(32 * 1024 - 11);
  // A batch with one change, whose key fills the chunk.
  data.writeUInt32LE(1, 8);
  data.set(
    [3, 0x80 | ((data.length - 16) & 0x7f), 0x80 | (((data.length - 16) >> 7) & 0x7f), (data.length - 16) >> 14],
    12,
  );
  const chunk = Buffer.concat([Buffer.alloc(11), data]);
  chunk.writeUInt16LE(data.length, 4);
  chunk[6] = 5;
  chunk.writeUInt32LE(7, 7);
  chunk.writeUInt32LE(maskedCrc(chunk.subarray(6)), 0);
  const log = Buffer.concat(Array.from({ length: 300 }, () => chunk));
  let turns = 0;
  const counting = new AbortController();
  t.after(() => counting.abort());
  void (async () => {
    for (; !counting.signal.aborted; turns += 1) await nextTurn();
  })();
  const changes: Changes = { entries: [], tombstones: [] };
  await inSlices(readLog("000007.log", log, { log: 7, mayEndEarly: false }, changes));
  assert.ok(turns > 1, `${turns}`);
});

test("a log that is larger than the limit is refused without being read", async (t) => {
  const folder = await emptyFolder(t);
  await unpack(new URL("../../../../../fixtures/pebble/killed.tar.gz", import.meta.url), folder);
  const file = await open(join(folder, "999999.log"), "w");
  await file.truncate(2 ** 31);
  await file.close();
  await assert.rejects(PebbleDatabase.open(folder), { message: /999999\.log has 2147483648 bytes/ });
});

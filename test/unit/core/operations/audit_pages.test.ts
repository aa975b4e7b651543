import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, test } from "node:test";
import { auditPage } from "#core/operations/audit_pages.ts";
import { folderOf } from "#test/unit/core/module/support.ts";

const record = (at: number, more: object = {}) =>
  `${JSON.stringify({ id: `id-${String(at).padStart(5, "0")}`, by: "admin socket", what: `reload m${at}`, steps: [], result: "done", ...more })}\n`;

describe("a page of the audit file", () => {
  test("has the newest records first, and continues into the previous file without loss or repetition", async (t) => {
    const long = "x".repeat(300);
    const older = Array.from({ length: 700 }, (_, at) => record(at, { note: long }));
    const newer = Array.from({ length: 700 }, (_, at) => record(700 + at, { note: long }));
    const folder = await folderOf(t, { "audit.jsonl.1": older.join(""), "audit.jsonl": newer.join("") });
    const found: string[] = [];
    let before: string | undefined;
    do {
      const page = await auditPage(join(folder, "audit.jsonl"), { before, limit: 300 });
      found.push(...page.changes.map(({ what }) => what));
      before = page.next;
    } while (before !== undefined);
    assert.deepEqual(
      found,
      Array.from({ length: 1400 }, (_, at) => `reload m${1399 - at}`),
    );
  });

  test("has the records that match requester, text and result", async (t) => {
    const lines = [record(1), record(2, { by: "token deploy" }), record(3, { result: "failed" }), record(4)];
    const folder = await folderOf(t, { "audit.jsonl": lines.join("") });
    const ids = async (filter: Parameters<typeof auditPage>[1]) =>
      (await auditPage(join(folder, "audit.jsonl"), filter)).changes.map(({ id }) => Number(id.slice(3)));
    assert.deepEqual(await ids({ by: "deploy" }), [2]);
    assert.deepEqual(await ids({ what: "m4" }), [4]);
    assert.deepEqual(await ids({ result: "failed" }), [3]);
    assert.deepEqual(await ids({ by: "socket", result: "done" }), [4, 1]);
    assert.deepEqual(await ids({ before: "unknown" }), []);
  });

  test("skips a line that a crash has cut, and is empty without a file", async (t) => {
    const folder = await folderOf(t, { "audit.jsonl": `${record(1)}{"id":"torn"\n${record(2).slice(0, 20)}` });
    const page = await auditPage(join(folder, "audit.jsonl"));
    assert.deepEqual(page, { changes: [JSON.parse(record(1))] });
    await writeFile(join(folder, "audit.jsonl"), "");
    assert.deepEqual(await auditPage(join(folder, "audit.jsonl")), { changes: [] });
    assert.deepEqual(await auditPage(join(folder, "nowhere.jsonl")), { changes: [] });
  });
});

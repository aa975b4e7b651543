import assert from "node:assert/strict";
import { mkdtempDisposableSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { OpenChange } from "#core/operations/change.ts";
import { ModhostError } from "#core/util/errors.ts";

const failed = (error: unknown) =>
  new OpenChange({ what: "reload notes", by: "a test" }).failed(error, (text) => text).then((change) => change.error);

test("long messages and source lines are shortened", async () => {
  using folder = mkdtempDisposableSync(join(tmpdir(), "modhost-change-"));
  const file = join(folder.path, "mod_notes.js");
  writeFileSync(file, "x".repeat(100_000));
  const reason = "y".repeat(5_000_000);
  const error = await failed(
    new ModhostError("MODULE_FAILED", { name: "notes", step: "imported", reason, place: { file, line: 1 } }),
  );
  assert.match(error?.message ?? "", /^The module notes failed.*y\.\.\. \(65\d{3} characters\)$/);
  assert.match(error?.place?.text ?? "", /^x{8192}\.\.\. \(100000 characters\)$/);
});

test("a change can fail with any thrown value", async () => {
  const hostile = { toString: () => assert.fail("it was shown") };
  for (const thrown of [Object.create(null), hostile])
    assert.equal((await failed(thrown))?.message, "a thrown value cannot be read");
});

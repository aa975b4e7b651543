import assert from "node:assert/strict";
import { test } from "node:test";
import { allowance, upload } from "./upload.ts";

test("200 MiB in one body take no more memory than a few MiB", async (t) => {
  const { before, peak } = await upload({ mebibytes: 200, store: false });
  if (before === undefined || peak === undefined) return t.skip("the system does not report the memory of a process");
  assert.ok(peak - before < allowance, `${peak - before} bytes more than for a small body`);
});

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { Deadline } from "#core/module/deadline.ts";

const standStill = (milliseconds: number) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, milliseconds);

test("work that ends while the process is suspended is not late", async () => {
  const waited = new Deadline(0.1).result(readFile(import.meta.filename, "utf8"), "load_timeout");
  standStill(400);
  assert.match(await waited, /Deadline/);
});

test("work that does not settle is late, and the error names the option", async () => {
  await assert.rejects(new Deadline(0.05).result(new Promise(() => {}), "load_timeout"), {
    message: "it took longer than 0.05 s: let it settle sooner, or raise the option load_timeout",
  });
});

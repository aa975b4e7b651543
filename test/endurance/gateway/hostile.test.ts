import assert from "node:assert/strict";
import { test } from "node:test";
import { hostile } from "./hostile.ts";

const skip = process.platform === "linux" ? false : "only Linux reports memory in /proc";
const mebibyte = 2 ** 20;

/**
 * The long form, with a million entries and a thousand slow readers:
 * `npm run test:gateway-hostile`.
 */
test("hostile content and clients get correct responses within bounded memory, and leave nothing behind", {
  skip,
}, async () => {
  const { requests, failures, memory } = await hostile({
    content: { levels: 500, entries: 2000, heavy: 16, abyss: 2 ** 16 },
    enough: 64 * 1024,
    all: false,
    kinds: 2,
    readers: 50,
    turns: false,
  });
  assert.deepEqual(failures, []);
  assert.ok(requests > 120, `${requests} requests`);
  // A block of 2 MiB for each, and the shared readahead.
  assert.ok(memory.readers < 450 * mebibyte, `${memory.readers / mebibyte} MiB`);
});

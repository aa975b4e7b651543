import assert from "node:assert/strict";
import { test } from "node:test";
import { parseSize, sizeText } from "#node/util/size.ts";

test("sizes are read as people write them", () => {
  const sizes: Readonly<Record<string, number>> = {
    "10GB": 1e10,
    "500MiB": 500 * 2 ** 20,
    "1.5k": 1500,
    "1,000": 1000,
    "2 TiB": 2 * 2 ** 40,
    "7b": 7,
    "0": 0,
    "1kib": 1024,
  };
  for (const [text, bytes] of Object.entries(sizes)) assert.equal(parseSize(text), bytes, text);
  assert.throws(() => parseSize("GB"), { message: 'strconv.ParseFloat: parsing "": invalid syntax' });
  assert.throws(() => parseSize("10XB"), { message: "unhandled size name: xb" });
  assert.throws(() => parseSize("20EB"), { message: "too large: 20EB" });
});

test("sizes are printed with at most three digits", () => {
  const texts = [9, 78_000, 999, 1000, 1500, 10_000_000_000, 2 ** 64].map(sizeText);
  assert.deepEqual(texts, ["9 B", "78 kB", "999 B", "1.0 kB", "1.5 kB", "10 GB", "18 EB"]);
});

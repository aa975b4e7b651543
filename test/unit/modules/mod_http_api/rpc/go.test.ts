import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { parseDuration } from "#node/util/go/duration.ts";
import { goJson, quote } from "#node/util/go/text.ts";

describe("durations", () => {
  const durations: [text: string, milliseconds: number][] = [
    ["0", 0],
    ["-0", -0],
    ["5s", 5000],
    ["1h2m3.5s", 3_723_500],
    ["-1.5m", -90_000],
    ["+.5h", 1_800_000],
    ["1.s", 1000],
    ["1500us", 1.5],
    ["1500µs", 1.5],
    ["2000000ns", 2],
  ];
  for (const [text, milliseconds] of durations) test(text, () => assert.ok(parseDuration(text) === milliseconds));

  const wrong: [text: string, message: string][] = [
    ["", 'time: invalid duration ""'],
    ["x", 'time: invalid duration "x"'],
    [".s", 'time: invalid duration ".s"'],
    ["3", 'time: missing unit in duration "3"'],
    ["1s2", 'time: missing unit in duration "1s2"'],
    ["1x", 'time: unknown unit "x" in duration "1x"'],
    ["1s 2m", 'time: unknown unit "s " in duration "1s 2m"'],
    ["1constructor", 'time: unknown unit "constructor" in duration "1constructor"'],
    ["2562048h", 'time: invalid duration "2562048h"'],
  ];
  for (const [text, message] of wrong)
    test(`${text || "nothing"} is refused`, () => assert.throws(() => parseDuration(text), { message }));
});

test("text is quoted like in Go", () => {
  const texts: [text: string, quoted: string][] = [
    ["a b", '"a b"'],
    ['"\\', '"\\"\\\\"'],
    ["\n\t\r\x00\x7f\x07", '"\\n\\t\\r\\x00\\u007f\\a"'],
    ["äß€😀", '"äß€😀"'],
    ["\u00a0\u2028\u200b\ufeff", '"\\u00a0\\u2028\\u200b\\ufeff"'],
    ["\u{e0001}", '"\\U000e0001"'],
  ];
  for (const [text, quoted] of texts) assert.equal(quote(text), quoted);
});

test("JSON is escaped like in Go", () => {
  assert.equal(
    goJson({ b: "<>&\u2028\u2029", a: [1n, null, 1e21, 1e-7] }),
    '{"b":"\\u003c\\u003e\\u0026\\u2028\\u2029","a":[1,null,1e+21,1e-7]}',
  );
  assert.equal(goJson(undefined), "null");
});

import assert from "node:assert/strict";
import { test } from "node:test";
import { cutTo, isColored, padTo, painter, widthOf } from "#core/util/terminal.ts";

test("a terminal is coloured, unless NO_COLOR or FORCE_COLOR says otherwise, or it is dumb", () => {
  const terminal = { isTTY: true };
  for (const [stream, env, expected] of [
    [terminal, {}, true],
    [{}, {}, false],
    [terminal, { NO_COLOR: "1" }, false],
    [terminal, { NO_COLOR: "" }, true],
    [terminal, { TERM: "dumb" }, false],
    [{}, { FORCE_COLOR: "1" }, true],
    [terminal, { FORCE_COLOR: "0" }, false],
    [{}, { FORCE_COLOR: "1", NO_COLOR: "1" }, true],
  ] as const) {
    assert.equal(isColored(stream, env), expected, JSON.stringify([stream, env]));
  }
});

test("the width of a text counts columns, without colour codes", () => {
  assert.equal(widthOf("abc"), 3);
  assert.equal(widthOf(painter(true)("red", "abc")), 3);
  assert.equal(widthOf("日本語"), 6);
  assert.equal(widthOf("e\u0301👨‍👩‍👧x"), 4);
});

test("texts are cut to columns, and padded to them", () => {
  assert.equal(cutTo("abcdef", 6), "abcdef");
  assert.equal(cutTo("abcdef", 4), "abc…");
  assert.equal(cutTo("日本語", 4), "日…");
  assert.equal(cutTo("abc", 0), "");
  assert.equal(cutTo(`ab${painter(true)("red", "cdef")}gh`, 5), "ab\u001b[31mcd…\u001b[0m");
  assert.equal(cutTo(`${painter(true)("red", "ab")}cdef`, 4), "\u001b[31mab\u001b[0mc…");
  assert.equal(padTo("日", 4), "日  ");
  assert.equal(padTo("abcdef", 4), "abcdef");
});

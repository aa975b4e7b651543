/**
 * Tests that handwritten pages are short enough to read in five minutes. Generated pages may be
 * longer.
 */
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { project } from "./guides/support.ts";

const MAX_WORDS = 1200;
const pages = globSync(["*.md", "{core,docs,modules}/**/*.md"], { cwd: project });

/** Counts the words of a page. Benchmark tables and the rules of other tables do not count. */
function wordsOf(text: string): number {
  const prose = text.replaceAll(/<!-- bench: .*?<!-- end -->/gs, "").replaceAll(/^\|[-| ]+\|$/gm, "");
  return prose.replaceAll("|", " ").trim().split(/\s+/).length;
}

test(`no handwritten page has more than ${MAX_WORDS} words`, () => {
  assert.ok(pages.length > 100);
  const long = pages.flatMap((page) => {
    const text = readFileSync(join(project, page), "utf8");
    const words = wordsOf(text);
    return text.startsWith("<!-- Generated") || words <= MAX_WORDS ? [] : [`${page}: ${words}`];
  });
  assert.deepEqual(long, []);
});

test("words are counted without pipes, rules of tables and benchmarks", () => {
  assert.equal(wordsOf("one two\n\n| three | four |\n|---|---|\n| five | six |\n"), 6);
  assert.equal(wordsOf("one\n<!-- bench: node -->\ntwo three\n<!-- end -->\nfour"), 2);
});

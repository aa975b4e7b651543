/** The operator's guide: every page is named by its table, and is read in five minutes. */
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { project } from "./guides/support.ts";

const MAX_WORDS = 1200;
const guides = join(project, "docs/guides");
const pages = globSync("operate/*.md", { cwd: guides });
const read = (page: string) => readFileSync(join(guides, page), "utf8");

test("the table of the operator's guide names each of its pages", () => {
  assert.ok(pages.length > 10);
  const table = read("operate.md");
  assert.deepEqual(
    pages.filter((page) => !table.includes(`](${page})`)),
    [],
  );
});

test(`no page of the operator's guide has more than ${MAX_WORDS} words`, () => {
  const long = pages.filter((page) => read(page).split(/\s+/).length > MAX_WORDS);
  assert.deepEqual(long, []);
});

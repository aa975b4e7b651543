/** Tests that the table of the operator's guide names each of its pages. */
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { project } from "./guides/support.ts";

const guides = join(project, "docs/guides");
const pages = globSync("operate/*.md", { cwd: guides });

test("the table of the operator's guide names each of its pages", () => {
  assert.ok(pages.length > 10);
  const table = readFileSync(join(guides, "operate.md"), "utf8");
  assert.deepEqual(
    pages.filter((page) => !table.includes(`](${page})`)),
    [],
  );
});

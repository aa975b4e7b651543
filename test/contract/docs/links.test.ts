/**
 * Tests that links of all pages in the root, `core`, `docs` and `modules` lead to existing files
 * and headings.
 */
import assert from "node:assert/strict";
import { existsSync, globSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join, relative, resolve } from "node:path";
import { describe, test } from "node:test";
import { anchor } from "#config/build/generate/markdown.ts";
import { project } from "./guides/support.ts";

const pages = globSync(["{README,CONTRIBUTING,CHANGELOG}.md", "{core,docs,modules}/**/*.md"], { cwd: project });

/** Returns a page without its code blocks. */
async function textOf(page: string): Promise<string> {
  return (await readFile(page, "utf8")).replaceAll(/^```.*?^```$/gms, "");
}

/** Counts how often each heading occurs on a page: a link leads to the first one. */
async function headingsOf(page: string): Promise<Map<string, number>> {
  const headings = new Map<string, number>();
  for (const [, text = ""] of (await textOf(page)).matchAll(/^#+ (.*)$/gm)) {
    headings.set(anchor(text), (headings.get(anchor(text)) ?? 0) + 1);
  }
  return headings;
}

describe("the links of", () => {
  for (const page of pages) {
    test(page, async () => {
      const path = join(project, page);
      const lost: string[] = [];
      for (const [, target = ""] of (await textOf(path)).matchAll(/\]\(([^)\s]+)\)/g)) {
        if (/^[a-z]+:/.test(target)) continue;
        const [file = "", heading] = target.split("#");
        const to = file === "" ? path : resolve(path, "..", file);
        if (!existsSync(to)) lost.push(`${target}: ${relative(project, to)} does not exist`);
        else if (heading !== undefined && (await headingsOf(to)).get(heading) !== 1)
          lost.push(`${target}: there has to be exactly one heading with that name`);
      }
      assert.deepEqual(lost, []);
    });
  }
});

/** `config/build/fresh.mjs`, and that started tests run what it builds. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { rm, utimes } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { launcher } from "#test/support/launchers.ts";
import { folderOf, write } from "#test/unit/core/module/support.ts";

// It has no types: any Node.js can run it.
const { digestOf, isFresh, RECORD } = createRequire(import.meta.url)("../../../../config/build/fresh.mjs") as {
  digestOf(folder: string): string;
  isFresh(folder: string, needed?: { declarations: boolean }): boolean;
  RECORD: string;
};

const settings = {
  "package.json": "{}",
  "package-lock.json": "{}",
  "tsconfig.json": "{}",
  "config/build/tsconfig.build.json": "{}",
};

test("dist/ is stale if a source was changed, added, renamed or removed, whatever the times of files, and otherwise fresh", async (t) => {
  const sources = { "core/a.ts": "1", "modules/c/d.ts": "", "modules/c/pages/e.css": "", "config/build/build.mjs": "" };
  const folder = await folderOf(t, { ...settings, ...sources });
  const built = (declarations: boolean) =>
    write(folder, { [join("dist", RECORD)]: JSON.stringify({ digest: digestOf(folder), declarations }) });
  assert.equal(isFresh(folder), false);
  await built(true);
  assert.equal(isFresh(folder), true);

  const changes: (() => Promise<void>)[] = [
    () => write(folder, { "core/a.ts": "2" }),
    () => write(folder, { "core/b.ts": "" }),
    () => rm(join(folder, "core/b.ts")).then(() => write(folder, { "core/c.ts": "" })),
    () => rm(join(folder, "core/c.ts")),
    () => write(folder, { "modules/c/pages/e.css": "a {}" }),
    () => write(folder, { "package-lock.json": '{ "packages": {} }' }),
  ];
  for (const change of changes) {
    await change();
    await utimes(join(folder, "core/a.ts"), 1, 1);
    assert.equal(isFresh(folder), false, String(change));
    await built(true);
    assert.equal(isFresh(folder), true, String(change));
  }
  await write(folder, { "modules/c/README.md": "A page" });
  assert.equal(isFresh(folder), true);
});

test("a build without declarations is stale if declarations are needed", async (t) => {
  const folder = await folderOf(t, { ...settings, "core/a.ts": "", "modules/a.ts": "", "config/build/a.mjs": "" });
  await write(folder, {
    [join("dist", RECORD)]: JSON.stringify({ digest: digestOf(folder), declarations: false }),
  });
  assert.deepEqual([isFresh(folder), isFresh(folder, { declarations: true })], [true, false]);
});

/** Prints at the end which sources were loaded. */
const SPY = `
const loaded = [];
require("node:module").registerHooks({
  load(url, context, next) {
    if (/[/](core|modules)[/].*[.]ts/.test(url)) loaded.push(url);
    return next(url, context);
  },
});
process.on("exit", () => console.error("SPY " + JSON.stringify(loaded)));
`;

test("the program that tests start loads no source, with all its modules", async (t) => {
  const folder = await folderOf(t, { "spy.cjs": SPY });
  const args = [`--require=${join(folder, "spy.cjs")}`, launcher, "check"];
  const { stderr } = await promisify(execFile)(process.execPath, args, { cwd: folder });
  assert.deepEqual(JSON.parse(/^SPY (.*)$/m.exec(stderr)?.[1] ?? "null"), []);
});

import assert from "node:assert/strict";
import { rm, utimes } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { folderOf, write } from "#test/unit/core/module/support.ts";

// It has no types: any Node.js can run it.
const { freshen } = (await import(new URL("fresh_dist.mjs", import.meta.url).href)) as {
  freshen(folder: string, build: () => void): void;
};

test("dist/ is built again when a source is changed, added or removed, after a build that failed, and not otherwise", async (t) => {
  const files = { "core/a.ts": "", "core/b.ts": "", "modules/c/d.ts": "", "tools/build.mjs": "", "package.json": "{}" };
  const folder = await folderOf(t, { ...files, "tsconfig.json": "{}", "tsconfig.build.json": "{}", "dist/a.js": "" });
  const past = async () => {
    const ours = ["tools", "tools/build.mjs", "modules", "modules/c", "modules/c/d.ts", "core/e.ts"];
    for (const path of ["core", "core/a.ts", "core/b.ts", ...ours])
      await utimes(join(folder, path), 1, 1).catch(() => undefined);
    for (const path of ["package.json", "tsconfig.json", "tsconfig.build.json"]) await utimes(join(folder, path), 1, 1);
  };
  let builds = 0;
  const built = () => {
    const before = builds;
    freshen(folder, () => {
      builds += 1;
    });
    return builds > before;
  };
  await past();
  assert.deepEqual([built(), built()], [true, false]);
  await write(folder, { "modules/c/d.ts": "1" });
  assert.equal(built(), true);
  await past();
  assert.equal(built(), false);
  await write(folder, { "core/e.ts": "" });
  assert.equal(built(), true);
  await past();
  await rm(join(folder, "core/b.ts"));
  assert.equal(built(), true);
  await past();
  await rm(join(folder, "dist"), { recursive: true });
  assert.throws(() =>
    freshen(folder, () => {
      throw new Error("does not compile");
    }),
  );
  await write(folder, { "dist/a.js": "" });
  assert.deepEqual([built(), built()], [true, false]);
});

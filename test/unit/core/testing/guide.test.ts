import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdir, mkdtemp, readdir, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { sandboxUnavailable } from "#core/sandbox/index.ts";
import { project, readGuide, shownFiles, typeErrors, writeFiles } from "#test/contract/docs/guides/support.ts";
import { sourceFlags } from "#test/support/launchers.ts";

test("the module and the tests that the guide shows compile and pass where the package is installed", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "modhost-guide-"));
  t.after(() => rm(folder, { recursive: true }));
  const files = shownFiles(readGuide("module/test"));
  assert.deepEqual(
    files.map(({ name }) => name),
    ["mod_visits.ts", "mod_visits.test.ts", "mod_prices.ts", "mod_prices.test.ts"],
  );
  const isSandboxed = sandboxUnavailable() === undefined;
  await writeFiles(
    folder,
    files.filter(({ name }) => isSandboxed || name !== "mod_prices.test.ts"),
  );
  await mkdir(join(folder, "node_modules"));
  await symlink(project, join(folder, "node_modules", "modhost"));
  const written = await readdir(folder);
  assert.deepEqual(typeErrors(written.filter((name) => name.endsWith(".ts")).map((name) => join(folder, name))), []);
  // The tests must not run as a part of this run.
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  const { stdout } = await promisify(execFile)(process.execPath, [...sourceFlags, "--test", "--test-reporter=tap"], {
    cwd: folder,
    env,
  });
  assert.match(stdout, isSandboxed ? /^# pass 4$/m : /^# pass 2$/m);
  assert.match(stdout, /^# fail 0$/m);
});

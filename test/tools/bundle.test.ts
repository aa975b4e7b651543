/** `test/support/bundle.mjs`. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { launcher } from "#test/support/launchers.ts";

const { bundle } = (await import(new URL("../support/bundle.mjs", import.meta.url).href)) as {
  bundle(): Promise<{ readonly program: string } | undefined>;
};

/** Tells at the end what was loaded of the sources. */
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

test("a program with the hook of the bundle runs nothing of the sources, with all its modules", async () => {
  const hooks = await bundle();
  assert.ok(hooks !== undefined);
  const folder = await mkdtemp(join(tmpdir(), "modhost-bundle-"));
  try {
    const spy = join(folder, "spy.cjs");
    await writeFile(spy, SPY);
    const flags = ["--conditions=source", `--require=${hooks.program}`, `--require=${spy}`];
    const { stderr } = await promisify(execFile)(process.execPath, [...flags, launcher, "check"], { cwd: folder });
    assert.deepEqual(JSON.parse(/^SPY (.*)$/m.exec(stderr)?.[1] ?? "null"), []);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});

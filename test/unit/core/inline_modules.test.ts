import assert from "node:assert/strict";
import { test } from "node:test";
import { configFrom, createHost, type InlineModule } from "#core/index.ts";
import { folderOf } from "./module/support.ts";

test("paths of modules are relative to cwd, also for the folder itself", async (t) => {
  const cwd = await folderOf(t, { "index.mjs": "export default function here() {}" });
  const elsewhere = await folderOf(t, {});
  for (const path of [".", "./", "./index.mjs"]) {
    const host = createHost({ config: configFrom({ modules_enabled: [] }, elsewhere), cwd, log: false, tls: false });
    t.after(() => host.stop());
    await host.start();
    await host.load(path);
    assert.equal(host.modules().length, 1, path);
    await host.stop();
  }
});

test("a module that is passed without a name prevents the start, and the error names its position", async () => {
  const nameless = { load: () => undefined } as unknown as InlineModule;
  const host = createHost({ config: { modules_enabled: [] }, modules: [() => undefined, nameless], log: false });
  await assert.rejects(host.start(), {
    code: "MODULE_INVALID",
    message: /^modules\[1\] .*write \{ name: "hello", load \}/,
  });
});

test("two modules of one name prevent the start, and the error names both", async () => {
  const hello = { name: "hello", load: () => undefined };
  const host = createHost({
    config: { modules_enabled: [] },
    modules: [hello, { ...hello, name: "mod_hello" }],
    log: false,
  });
  await assert.rejects(host.start(), { code: "MODULE_INVALID", message: /called hello, too: rename one/ });
});

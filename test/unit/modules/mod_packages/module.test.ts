import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import type { Module } from "#core/types.ts";
import type load from "#modules/mod_packages/index.ts";
import type { Packages } from "#modules/mod_packages/packages.ts";
import { startHost } from "#test/support/host.ts";
import { PackageSite } from "./support.ts";

test("the options of the host become the settings of the engine", async () => {
  let packages: Packages | undefined;
  await using running = await startHost({
    listen: false,
    config: {
      modules_enabled: ["packages", "user"],
      packages_minimum_release_age: "3d",
      packages_release_age_exceptions: ["@acme/*"],
      packages_allow_scripts: ["pad"],
      packages_verify_provenance: false,
    },
    modules: {
      mod_user: (module: Module) => {
        packages = module.depends("packages") as Packages;
      },
    },
  });
  assert.ok(packages !== undefined, running.log());
  const settings = packages.settings();
  assert.equal(settings.store, join(running.folder, "data/packages"));
  assert.equal(settings.minimumReleaseAge, 3 * 24 * 3600);
  assert.deepEqual(settings.exceptions, { releaseAge: ["@acme/*"], scripts: ["pad"], deprecated: [] });
  assert.equal(settings.verifyProvenance, false);
  assert.ok(["http", "http_admin", "packages"].every((name) => settings.reserved.includes(name)));
  assert.equal(settings.lockFile, join(settings.folder, "modules.lock"));
});

test("the built module loads the engine when it is used, and installs a module with it", async () => {
  await using site = await PackageSite.open();
  await site.registry.publish({ name: "pad" });
  await site.publish({ manifest: { dependencies: { pad: "*" } } });
  const built: { default: typeof load } = await import(
    new URL("../../../../dist/modules/mod_packages/index.js", import.meta.url).href
  );
  const engine = await built.default({ provides() {} } as unknown as Parameters<typeof load>[0]).engine();
  const fetched = await engine.fetchModule("shop", { ...site.settings, host: "1.0.0" });
  const { version } = await engine.installModule(fetched, { grant: {}, run: "sandboxed" }, site.settings);
  assert.equal(version, "1.0.0");
  assert.equal(fetched.files, 3);
  await assert.rejects(engine.fetchModule("missing", site.settings), { code: "PACKAGE_NOT_FOUND" });
});

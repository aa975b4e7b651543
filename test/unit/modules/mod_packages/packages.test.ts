import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { installModule } from "#modules/mod_packages/engine.ts";
import { NpmRegistry } from "#test/support/npm_registry.ts";
import { PackageSite } from "./support.ts";

const consent = { grant: {}, run: "sandboxed" } as const;

describe("names and versions", () => {
  test("a module name finds its package, and a package name itself", async () => {
    await using site = await PackageSite.open();
    await site.publish();
    await site.registry.publish({ ...modulePublication, name: "notes" });
    await site.registry.publish({ ...modulePublication, name: "@acme/modhost-mod-cart" });
    for (const [source, name, module] of [
      ["shop", "modhost-mod-shop", "shop"],
      ["modhost-mod-shop", "modhost-mod-shop", "shop"],
      ["npm:modhost-mod-shop@1", "modhost-mod-shop", "shop"],
      ["notes@latest", "notes", "notes"],
      ["@acme/modhost-mod-cart", "@acme/modhost-mod-cart", "cart"],
    ] as const) {
      const fetched = await site.fetch(source);
      assert.equal(fetched.version.package, name);
      assert.equal(fetched.module, module);
    }
  });

  test("a name that does not exist is refused with both names", async () => {
    await using site = await PackageSite.open();
    await site.refuses(
      "shop",
      "PACKAGE_NOT_FOUND",
      `The registry ${site.registry.url} has no package modhost-mod-shop or shop: check the spelling, or the registry in .npmrc`,
    );
  });

  test("a range without a version is refused with the latest version", async () => {
    await using site = await PackageSite.open();
    await site.publish();
    await site.refuses(
      "shop@^2",
      "VERSION_NOT_FOUND",
      "modhost-mod-shop has no version that matches ^2: its latest one is 1.0.0",
    );
  });

  test("a version that was removed is named as such", async () => {
    await using site = await PackageSite.open();
    await site.publish();
    await site.publish({ version: "1.1.0" });
    delete site.registry.documents.get("modhost-mod-shop")?.versions["1.1.0"];
    await site.refuses(
      "shop@1.1.0",
      "VERSION_REMOVED",
      `modhost-mod-shop 1.1.0 has been removed from the registry ${site.registry.url}: choose another version. An installed copy keeps working`,
    );
  });

  test("a deprecated version is refused, unless there is an exception", async () => {
    await using site = await PackageSite.open();
    (await site.publish()).deprecated = "use cart.";
    await site.refuses(
      "shop",
      "VERSION_DEPRECATED",
      "modhost-mod-shop 1.0.0 is deprecated: use cart. Choose another version, or list modhost-mod-shop@1.0.0 in packages_allow_deprecated",
    );
    site.except({ deprecated: ["modhost-mod-shop@1.0.0"] });
    await site.fetch();
  });

  test("a deprecated dependency is a warning", async () => {
    await using site = await PackageSite.open();
    (await site.registry.publish({ name: "pad" })).deprecated = "pad yourself";
    await site.publish({ manifest: { dependencies: { pad: "*" } } });
    assert.deepEqual((await site.fetch()).warnings, ["Its dependency pad 1.0.0 is deprecated: pad yourself"]);
  });

  test("a lower version than the installed one needs consent", async () => {
    await using site = await PackageSite.open();
    await site.publish();
    await site.publish({ version: "1.1.0" });
    await installModule(await site.fetch(), consent, site.settings);
    await site.refuses(
      "shop@1.0.0",
      "VERSION_LOWER",
      "modhost-mod-shop 1.0.0 is lower than the installed version 1.1.0: consent to the downgrade to install it",
    );
    assert.equal((await site.fetch("shop@1.0.0", { allowLower: true })).version.version, "1.0.0");
  });

  test("a package that would replace a module of another package is refused", async () => {
    await using site = await PackageSite.open();
    await site.publish();
    await installModule(await site.fetch(), consent, site.settings);
    await site.registry.publish({ ...modulePublication, name: "@evil/shop" });
    await site.refuses(
      "@evil/shop",
      "NAME_TAKEN",
      "@evil/shop would be the module shop, which is already installed from modhost-mod-shop: remove that one first",
    );
  });

  test("a package that would replace a bundled module is refused", async () => {
    await using site = await PackageSite.open();
    site.set({ reserved: ["http_admin"] });
    await site.registry.publish({ ...modulePublication, name: "modhost-mod-http_admin" });
    await site.refuses(
      "http_admin",
      "NAME_RESERVED",
      "modhost-mod-http_admin would be the module http_admin, which comes with modhost: choose another package",
    );
  });

  test("an archive with another name or version is refused", async () => {
    await using site = await PackageSite.open();
    await site.publish({ manifest: { ...modulePublication.manifest, name: "modhost-mod-cart" } });
    await site.refuses(
      "shop",
      "MANIFEST_OTHER",
      "The archive of modhost-mod-shop 1.0.0 contains modhost-mod-cart 1.0.0: choose another version, or another registry",
    );
    await site.publish({ manifest: { ...modulePublication.manifest, version: "1.0.1" } });
    await site.refuses("shop", "MANIFEST_OTHER", /contains modhost-mod-shop 1\.0\.1/);
  });

  test("an archive of a dependency with another name is refused", async () => {
    await using site = await PackageSite.open();
    await site.registry.publish({ name: "pad", manifest: { name: "bad" } });
    await site.publish({ manifest: { dependencies: { pad: "*" } } });
    await site.refuses("shop", "MANIFEST_OTHER", /^The archive of pad 1\.0\.0 contains bad 1\.0\.0/);
  });
});

const modulePublication = {
  manifest: { modhost: { entry: "./index.js" } },
  files: { "index.js": "" },
} as const;

describe("registries", () => {
  test("the environment names a registry as it does for npm", async () => {
    await using site = await PackageSite.open();
    await using other = await NpmRegistry.start();
    await other.publish({ ...modulePublication, name: "modhost-mod-shop" });
    site.set({ env: { ...site.settings.env, npm_config_registry: other.url } });
    const { packages } = (await site.fetch()).version;
    assert.ok(packages["node_modules/modhost-mod-shop"]?.resolved.startsWith(other.url));
    assert.deepEqual(site.registry.requests, []);
  });

  test("an archive that would come from another registry than that of its scope is refused", async () => {
    await using site = await PackageSite.open();
    await using inner = await NpmRegistry.start();
    await site.npmrc(`@acme:registry=${inner.url}`);
    const outer = await site.registry.publish({ ...modulePublication, name: "@acme/shop" });
    const { dist } = await inner.publish({ ...modulePublication, name: "@acme/shop" });
    await site.fetch("@acme/shop");
    dist.tarball = outer.dist.tarball;
    const host = new URL(site.registry.url).host;
    await site.refuses(
      "@acme/shop",
      "REGISTRY_OTHER",
      `@acme/shop 1.0.0 would come from ${host}, but its registry is ${inner.url}: set the registry of its scope in .npmrc`,
    );
  });

  test("a name that the registry of its scope lacks is not looked up elsewhere", async () => {
    await using site = await PackageSite.open();
    await using inner = await NpmRegistry.start();
    await site.npmrc(`@acme:registry=${inner.url}`);
    await site.registry.publish({ ...modulePublication, name: "@acme/shop" });
    await site.refuses("@acme/shop", "PACKAGE_NOT_FOUND", /^The registry \S+ has no package @acme\/shop:/);
    await site.registry.publish({ name: "@acme/pad" });
    await site.publish({ manifest: { ...modulePublication.manifest, dependencies: { "@acme/pad": "*" } } });
    await site.refuses(
      "shop",
      "DEPENDENCY_NOT_FOUND",
      /^modhost-mod-shop needs @acme\/pad@\*, which cannot be installed/,
    );
  });

  test("a token is sent to its registry alone, and no message shows it", async () => {
    await using site = await PackageSite.open();
    await using other = await NpmRegistry.start();
    const { host } = new URL(site.registry.url);
    await site.npmrc(`//${host}/:_authToken=very-secret-token`, `@other:registry=${other.url}`);
    await site.publish();
    await other.publish({ ...modulePublication, name: "@other/x" });
    await site.fetch();
    await site.fetch("@other/x");
    assert.equal(site.registry.headers.get("/modhost-mod-shop")?.authorization, "Bearer very-secret-token");
    assert.equal(other.headers.get("/@other/x")?.authorization, undefined);
    site.registry.intercept = (request, response) => {
      response.writeHead(403, "very-secret-token is not valid").end(`no: ${request.headers.authorization}`);
      return true;
    };
    const { message } = await site.refuses("shop", "REGISTRY_REFUSED", /^The registry \S+ refuses modhost-mod-shop \(/);
    assert.ok(!message.includes("very-secret"), message);
  });

  test("a password in the URL of a registry is hidden", async () => {
    await using site = await PackageSite.open();
    await site.npmrc(`registry=${site.registry.url.replace("//", "//me:very-secret@")}`);
    const { message } = await site.refuses("shop", "PACKAGE_NOT_FOUND", /^The registry http:\/\/\*\*\*@127/);
    assert.ok(!message.includes("very-secret"), message);
  });

  test("a registry that cannot be reached is named", async () => {
    await using site = await PackageSite.open();
    const { url } = site.registry;
    await site.registry[Symbol.asyncDispose]();
    await site.refuses(
      "shop",
      "REGISTRY_UNREACHABLE",
      new RegExp(`^The registry ${url} cannot be reached for modhost-mod-shop: .`),
    );
  });
});

describe("dependencies", () => {
  test("install scripts are refused, unless there is an exception, and never run", async () => {
    await using site = await PackageSite.open();
    for (const script of ["preinstall", "install", "postinstall"]) {
      const name = `modhost-mod-${script}`;
      const scripts = { [script]: `touch ${site.folder}/ran` };
      await site.registry.publish({ ...modulePublication, name, manifest: { ...modulePublication.manifest, scripts } });
      await site.refuses(
        script,
        "SCRIPTS",
        `${name} 1.0.0 has the install script ${script}, which modhost never runs: choose another version, or list ${name} in packages_allow_scripts to install it without running the script`,
      );
      site.except({ scripts: [name] });
      await site.fetch(script);
      assert.ok(!(await site.left()).includes("ran"));
    }
  });

  test("an install script of a dependency is refused", async () => {
    await using site = await PackageSite.open();
    await site.registry.publish({ name: "pad", manifest: { scripts: { postinstall: "x" } } });
    await site.publish({ manifest: { ...modulePublication.manifest, dependencies: { pad: "*" } } });
    await site.refuses("shop", "SCRIPTS", /^pad 1\.0\.0 has the install script postinstall/);
  });

  test("an install script that the registry conceals is refused", async () => {
    await using site = await PackageSite.open();
    const entry = await site.publish({ manifest: { ...modulePublication.manifest, scripts: { install: "x" } } });
    delete entry.scripts;
    await site.refuses("shop", "SCRIPTS", /has the install script install,/);
  });

  test("a binding.gyp stands for an install script", async () => {
    await using site = await PackageSite.open();
    await site.publish({ files: { "binding.gyp": "{}" } });
    await site.refuses("shop", "SCRIPTS", /has the install script install \(node-gyp, because of its binding\.gyp\)/);
  });

  test("scripts that npm would not run for a registry's package do not matter", async () => {
    await using site = await PackageSite.open();
    const scripts = { test: "x", prepare: "x", prepublishOnly: "x" };
    await site.publish({ manifest: { ...modulePublication.manifest, scripts } });
    await site.fetch();
  });

  for (const spec of [
    "git+https://example.org/x.git",
    "github:alice/x",
    "https://example.org/x.tgz",
    "file:../x",
    "file:x.tgz",
  ]) {
    test(`a dependency on ${spec} is refused`, async () => {
      await using site = await PackageSite.open();
      await site.publish({ manifest: { ...modulePublication.manifest, dependencies: { x: spec } } });
      await site.refuses(
        "shop",
        "DEPENDENCY_REFUSED",
        `modhost-mod-shop needs x@${spec}, which does not come from a registry: choose a version without that dependency`,
      );
    });

    test(`a dependency of a dependency on ${spec} is refused`, async () => {
      await using site = await PackageSite.open();
      await site.registry.publish({ name: "pad", manifest: { dependencies: { x: spec } } });
      await site.publish({ manifest: { ...modulePublication.manifest, dependencies: { pad: "*" } } });
      await site.refuses(
        "shop",
        "DEPENDENCY_REFUSED",
        /^A dependency of modhost-mod-shop needs x@.*, which does not come/,
      );
    });
  }

  test("modhost as a peer dependency is not installed, and need not be in the registry", async () => {
    await using site = await PackageSite.open();
    await site.registry.publish({ name: "pad", manifest: { peerDependencies: { modhost: ">=1" } } });
    const dependencies = { pad: "*" };
    await site.publish({
      manifest: { ...modulePublication.manifest, dependencies, peerDependencies: { modhost: "^1" } },
    });
    assert.deepEqual(Object.keys((await site.fetch()).version.packages), [
      "node_modules/modhost-mod-shop",
      "node_modules/modhost-mod-shop/node_modules/pad",
    ]);
  });

  test("development dependencies are not installed", async () => {
    await using site = await PackageSite.open();
    await site.publish({ manifest: { ...modulePublication.manifest, devDependencies: { missing: "*" } } });
    assert.equal(Object.keys((await site.fetch()).version.packages).length, 1);
  });

  test("optional dependencies that are missing or for other machines are left out", async () => {
    await using site = await PackageSite.open();
    await site.registry.publish({ name: "other", manifest: { os: ["aix"] } });
    const optionalDependencies = { other: "*", missing: "*", git: "github:alice/x" };
    await site.publish({ manifest: { ...modulePublication.manifest, optionalDependencies } });
    assert.equal(Object.keys((await site.fetch()).version.packages).length, 1);
  });

  test("peer dependencies are installed", async () => {
    await using site = await PackageSite.open();
    await site.registry.publish({ name: "pad" });
    await site.publish({ manifest: { ...modulePublication.manifest, peerDependencies: { pad: "^1" } } });
    assert.equal(Object.keys((await site.fetch()).version.packages).length, 2);
  });

  test("dependencies in the archive of the module are not fetched", async () => {
    await using site = await PackageSite.open();
    await site.registry.publish({ name: "left" });
    const dependencies = { pad: "^1", left: "^1" };
    await site.publish({
      manifest: { ...modulePublication.manifest, dependencies, bundleDependencies: ["pad"] },
      files: { "node_modules/pad/index.js": "" },
    });
    assert.deepEqual(Object.keys((await site.fetch()).version.packages), [
      "node_modules/modhost-mod-shop",
      "node_modules/modhost-mod-shop/node_modules/left",
    ]);
  });

  test("a file in the archive of the module at the path of a dependency is refused", async () => {
    await using site = await PackageSite.open();
    await site.registry.publish({ name: "pad" });
    await site.publish({
      manifest: { ...modulePublication.manifest, dependencies: { pad: "^1" } },
      files: { "node_modules/PAD/package.json": "{}" },
    });
    await site.refuses("shop", "ARCHIVE_COLLISION", /^The archive of pad contains both node_modules\/pad/);
  });

  test("two versions of a dependency are both installed, and an alias with its own name", async () => {
    await using site = await PackageSite.open();
    await site.registry.publish({ name: "pad" });
    await site.registry.publish({ name: "pad", version: "2.0.0" });
    await site.registry.publish({ name: "left", manifest: { dependencies: { pad: "1" } } });
    const dependencies = { left: "*", pad: "2", old: "npm:pad@1" };
    await site.publish({ manifest: { ...modulePublication.manifest, dependencies } });
    const { packages } = (await site.fetch()).version;
    const own = "node_modules/modhost-mod-shop";
    assert.equal(packages[`${own}/node_modules/pad`]?.version, "2.0.0");
    assert.equal(packages[`${own}/node_modules/left/node_modules/pad`]?.version, "1.0.0");
    assert.equal(packages[`${own}/node_modules/old`]?.name, "pad");
  });
});

describe("modules", () => {
  for (const [title, manifest, code, message] of [
    ["a package without the key modhost", { modhost: undefined }, "NO_MODULE", "its package.json has no key modhost"],
    ["a package with a wrong key modhost", { modhost: "yes" }, "NO_MODULE", "must be an object"],
    ["a package of another kind", { modhost: { kind: "theme" } }, "NO_MODULE", "it is a modhost theme"],
    [
      "a module for other versions of the host",
      { modhost: { host: "^2" } },
      "HOST_OTHER",
      "requires modhost ^2, and this is 1.2.3",
    ],
    [
      "a module with another host as its peer",
      { peerDependencies: { modhost: "^2" } },
      "HOST_OTHER",
      "requires modhost ^2, and this is 1.2.3",
    ],
    [
      "a module for other versions of Node.js",
      { engines: { node: ">=99" } },
      "NODE_OTHER",
      "requires Node.js >=99, and this is 26.1.0",
    ],
    [
      "a module whose entry is missing",
      { modhost: { entry: "./other.js" } },
      "ENTRY_INVALID",
      "the entry ./other.js, which does not exist",
    ],
    [
      "a module whose entry leaves the package",
      { modhost: { entry: "../../x.js" } },
      "ENTRY_INVALID",
      "the entry ../../x.js, which is not in the package",
    ],
    ["a module whose entry is a folder", { modhost: { entry: "." } }, "ENTRY_INVALID", "which is not in the package"],
    [
      "a module with wrong permissions",
      { modhost: { entry: "./index.js", permissions: { connect: ["x"] } } },
      "MANIFEST_INVALID",
      "connect",
    ],
    [
      "a module with unknown permissions",
      { modhost: { entry: "./index.js", permissions: { fly: true } } },
      "MANIFEST_INVALID",
      "fly",
    ],
  ] as const) {
    test(`${title} is refused`, async () => {
      await using site = await PackageSite.open();
      await site.publish({ manifest });
      const { message: text } = await site.refuses("shop", code, /modhost-mod-shop/);
      assert.ok(text.includes(message), text);
    });
  }

  test("a dependency for other versions of Node.js is refused", async () => {
    await using site = await PackageSite.open();
    await site.registry.publish({ name: "pad", manifest: { engines: { node: ">=99" } } });
    await site.publish({ manifest: { dependencies: { pad: "*" } } });
    await site.refuses("shop", "NODE_OTHER", /^pad 1\.0\.0 requires Node\.js >=99, and this is 26\.1\.0/);
  });

  test("texts of a package cannot control a terminal", async () => {
    await using site = await PackageSite.open();
    (await site.publish()).deprecated = "\u001b[2Jpwned\u202e";
    await site.refuses("shop", "VERSION_DEPRECATED", /is deprecated: \\x1b\[2Jpwned\\u202e\. Choose/);
  });
});

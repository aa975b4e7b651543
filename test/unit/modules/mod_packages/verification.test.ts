import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { integrityOf, packageArchive, SigningKey } from "#test/support/npm_registry.ts";
import { modulePackage, PackageSite } from "./support.ts";

const HOUR = 3600_000;

describe("checksums", () => {
  test("an archive that differs from its checksum is refused", async () => {
    await using site = await PackageSite.open();
    await site.publish();
    const other = await packageArchive({ manifest: { name: "modhost-mod-shop", version: "1.0.0" } });
    site.registry.bodies.set("/modhost-mod-shop/-/modhost-mod-shop-1.0.0.tgz", other);
    await site.refuses(
      "shop",
      "INTEGRITY",
      `The contents of modhost-mod-shop 1.0.0 do not match the checksum of ${site.registry.url}: try again, or choose another version`,
    );
  });

  test("the archive of a dependency that differs from its checksum is refused", async () => {
    await using site = await PackageSite.open();
    await site.registry.publish({ name: "pad" });
    await site.publish({ manifest: { dependencies: { pad: "^1" } } });
    site.registry.bodies.set(
      "/pad/-/pad-1.0.0.tgz",
      await packageArchive({ manifest: { name: "pad", version: "1.0.0" } }),
    );
    await site.refuses("shop", "INTEGRITY", /^The contents of pad 1\.0\.0 do not match the checksum/);
  });

  test("a version with a SHA-1 checksum alone is refused", async () => {
    await using site = await PackageSite.open();
    site.registry.keys = [];
    const { dist } = await site.publish();
    delete dist.integrity;
    await site.refuses(
      "shop",
      "INTEGRITY_WEAK",
      "The registry has no SHA-512 checksum for modhost-mod-shop 1.0.0: choose another version",
    );
  });

  test("a version with other contents than the installed one of that number is refused", async () => {
    await using site = await PackageSite.open();
    await site.publish();
    const { installModule } = await import("#modules/mod_packages/engine.ts");
    await installModule(await site.fetch(), { grant: {}, run: "sandboxed" }, site.settings);
    await site.publish({ files: { "evil.js": "" } });
    await site.refuses(
      "shop",
      "VERSION_REPUBLISHED",
      "The registry now has other contents for modhost-mod-shop 1.0.0 than those that were installed: the registry or the package may be compromised. Choose another version",
    );
  });
});

describe("signatures", () => {
  test("a signed version is verified", async () => {
    await using site = await PackageSite.open();
    await site.publish();
    assert.deepEqual((await site.fetch()).version.verified, ["integrity", "signature"]);
  });

  test("a registry that does not sign is used without signatures", async () => {
    await using site = await PackageSite.open();
    site.registry.keys = [];
    await site.publish();
    assert.deepEqual((await site.fetch()).version.verified, ["integrity"]);
  });

  test("a wrong signature is refused", async () => {
    await using site = await PackageSite.open();
    const { dist } = await site.publish();
    dist.signatures = [(site.registry.keys[0] as SigningKey).sign("modhost-mod-shop@9.9.9:sha512-x")];
    await site.refuses(
      "shop",
      "SIGNATURE_INVALID",
      "The signature of modhost-mod-shop 1.0.0 is wrong: choose another version, or another registry",
    );
  });

  test("a signature for another checksum is refused, even if that one is right", async () => {
    await using site = await PackageSite.open();
    const { dist } = await site.publish();
    const { files = {}, manifest } = modulePackage({ files: { "evil.js": "" } });
    const archive = await packageArchive({
      files,
      manifest: { name: "modhost-mod-shop", version: "1.0.0", ...manifest },
    });
    site.registry.bodies.set("/modhost-mod-shop/-/modhost-mod-shop-1.0.0.tgz", archive);
    dist.integrity = integrityOf(archive);
    await site.refuses("shop", "SIGNATURE_INVALID", /^The signature of modhost-mod-shop 1\.0\.0 is wrong/);
  });

  for (const signatures of [undefined, []]) {
    test(`a version with ${signatures === undefined ? "no" : "an empty"} list of signatures is refused`, async () => {
      await using site = await PackageSite.open();
      const { dist } = await site.publish();
      if (signatures === undefined) delete dist.signatures;
      else dist.signatures = signatures;
      await site.refuses(
        "shop",
        "SIGNATURE_MISSING",
        `modhost-mod-shop 1.0.0 has no signature, although the registry ${site.registry.url} signs its packages: choose another version`,
      );
    });
  }

  test("a dependency without signature is refused", async () => {
    await using site = await PackageSite.open();
    const { dist } = await site.registry.publish({ name: "pad" });
    delete dist.signatures;
    await site.publish({ manifest: { dependencies: { pad: "^1" } } });
    await site.refuses("shop", "SIGNATURE_MISSING", /^pad 1\.0\.0 has no signature/);
  });

  test("a signature with a key that is not listed is refused", async () => {
    await using site = await PackageSite.open();
    await site.publish();
    site.registry.keys = [new SigningKey()];
    await site.refuses(
      "shop",
      "SIGNATURE_KEY_UNKNOWN",
      `modhost-mod-shop 1.0.0 is signed with a key that the registry ${site.registry.url} does not list: choose another version, or another registry`,
    );
  });

  test("a signature with a key that had expired is refused", async () => {
    await using site = await PackageSite.open();
    site.registry.keys = [new SigningKey("2019-01-01T00:00:00.000Z")];
    await site.publish();
    await site.refuses(
      "shop",
      "SIGNATURE_KEY_EXPIRED",
      "modhost-mod-shop 1.0.0 is signed with a key that had expired when it was published: choose another version, or another registry",
    );
  });

  test("a registry that fails to list its keys is not taken for one that does not sign", async () => {
    await using site = await PackageSite.open();
    await site.publish();
    site.registry.intercept = ({ url }, response) => {
      if (url !== "/-/npm/v1/keys") return false;
      response.writeHead(503).end();
      return true;
    };
    await site.refuses(
      "shop",
      "REGISTRY_UNREACHABLE",
      /^The registry .* cannot be reached for its signing keys: .*503/,
    );
  });
});

describe("the minimum release age", () => {
  const published = Date.parse("2060-05-01T00:00:00.000Z");

  /** Opens a site with an old version 1.0.0, and 1.1.0, which is one hour old. */
  async function openAged(): Promise<PackageSite> {
    const site = await PackageSite.open();
    site.set({ now: () => published + HOUR });
    await site.publish();
    await site.publish({ version: "1.1.0", time: new Date(published).toISOString() });
    return site;
  }

  test("a range gets the newest version that is old enough", async () => {
    await using site = await openAged();
    assert.equal((await site.fetch("shop@^1")).version.version, "1.0.0");
    assert.equal((await site.fetch("shop")).version.version, "1.0.0");
    site.set({ now: () => published + 48 * HOUR });
    assert.equal((await site.fetch("shop@^1")).version.version, "1.1.0");
  });

  test("a version that is too young is refused, with the time from which it is not", async () => {
    await using site = await openAged();
    await site.refuses(
      "shop@1.1.0",
      "VERSION_TOO_YOUNG",
      "modhost-mod-shop 1.1.0 was published 1 hour ago, and packages_minimum_release_age is 48 hours: wait until 2060-05-03T00:00:00.000Z, choose an older version, or list modhost-mod-shop in packages_release_age_exceptions",
    );
  });

  for (const exception of ["modhost-mod-shop", "modhost-mod-shop@1.1.0"]) {
    test(`the exception ${exception} allows a young version`, async () => {
      await using site = await openAged();
      site.except({ releaseAge: [exception] });
      assert.equal((await site.fetch("shop")).version.version, "1.1.0");
    });
  }

  test("an exception for another version does not count", async () => {
    await using site = await openAged();
    site.except({ releaseAge: ["modhost-mod-shop@1.0.9"] });
    await site.refuses("shop@1.1.0", "VERSION_TOO_YOUNG", /^modhost-mod-shop 1\.1\.0 was published/);
  });

  test("dependencies are old enough as well", async () => {
    await using site = await openAged();
    await site.registry.publish({ name: "pad", version: "1.0.0" });
    await site.registry.publish({ name: "pad", version: "1.0.1", time: new Date(published).toISOString() });
    await site.publish({ manifest: { dependencies: { pad: "^1" } } });
    const { packages } = (await site.fetch("shop@1.0.0")).version;
    assert.equal(packages["node_modules/modhost-mod-shop/node_modules/pad"]?.version, "1.0.0");
  });

  test("a dependency of a dependency of which all versions are too young is refused", async () => {
    await using site = await openAged();
    await site.registry.publish({ name: "pad", time: new Date(published).toISOString() });
    await site.registry.publish({ name: "left", manifest: { dependencies: { pad: "^1" } } });
    await site.publish({ manifest: { dependencies: { left: "^1" } } });
    await site.refuses("shop@1.0.0", "VERSION_TOO_YOUNG", /^pad 1\.0\.0 was published 1 hour ago/);
    site.except({ releaseAge: ["pad"] });
    await site.fetch("shop@1.0.0");
  });

  test("a registry that states no times is refused, unless there is an exception", async () => {
    await using site = await PackageSite.open();
    await site.publish();
    (site.registry.documents.get("modhost-mod-shop") as { time: unknown }).time = undefined;
    await site.refuses(
      "shop",
      "RELEASE_AGE_UNKNOWN",
      `The registry ${site.registry.url} does not say when modhost-mod-shop 1.0.0 was published, so its release age is unknown: list modhost-mod-shop in packages_release_age_exceptions to install it all the same`,
    );
    site.except({ releaseAge: ["modhost-mod-shop"] });
    assert.equal((await site.fetch()).version.published, undefined);
  });

  test("a release age of 0 allows every version", async () => {
    await using site = await openAged();
    site.set({ minimumReleaseAge: 0 });
    assert.equal((await site.fetch("shop")).version.version, "1.1.0");
  });
});

import assert from "node:assert/strict";
import { join } from "node:path";
import { describe, test } from "node:test";
import { changesBetween } from "#modules/mod_packages/engine.ts";
import { type AttestationBundle, type Statement, TestSigstore } from "#test/support/sigstore.ts";
import { PackageSite } from "./support.ts";

/** Opens a site with a module that has an attestation. The client trusts the test's Sigstore. */
async function openAttested(
  statement: Partial<Statement> = {},
  change: (bundle: AttestationBundle) => void = () => undefined,
): Promise<PackageSite> {
  const site = await PackageSite.open();
  const sigstore = await TestSigstore.make();
  await sigstore.trustIn(join(site.settings.store, ".trust"));
  await attest(site, sigstore, statement, change);
  return site;
}

async function attest(
  site: PackageSite,
  sigstore: TestSigstore,
  statement: Partial<Statement>,
  change: (bundle: AttestationBundle) => void = () => undefined,
): Promise<void> {
  const { name, version, dist } = await site.publish();
  const response = await sigstore.attest({ name, version, integrity: dist.integrity as string, ...statement });
  change(response.attestations[0]?.bundle as AttestationBundle);
  const path = `/-/npm/v1/attestations/${name}@${version}`;
  site.registry.bodies.set(path, Buffer.from(JSON.stringify(response)));
  dist.attestations = { url: `https://elsewhere.invalid${path}`, provenance: { predicateType: "x" } };
}

const refusal =
  /^The provenance of modhost-mod-shop 1\.0\.0 cannot be verified \(.*\): choose another version, or set packages_verify_provenance to false$/;

describe("provenance", () => {
  test("a version with provenance is verified, and its repository is that of the certificate", async () => {
    await using site = await openAttested({ stated: "https://git.example/victim/shop" });
    const { verified, repository } = (await site.fetch()).version;
    assert.deepEqual(verified, ["integrity", "signature", "provenance"]);
    assert.equal(repository, "https://git.example/alice/shop");
  });

  test("a statement that does not say how a package was built is no provenance", async () => {
    await using site = await openAttested({ predicateType: "https://example.org/publish/v1" }, (bundle) => {
      // The type next to the bundle is not signed.
      (bundle as { predicateType?: string }).predicateType = "https://slsa.dev/provenance/v1";
    });
    const { verified, repository } = (await site.fetch()).version;
    assert.deepEqual(verified, ["integrity", "signature"]);
    assert.equal(repository, undefined);
  });

  for (const [title, statement] of [
    ["another package", { name: "other" }],
    ["another version", { version: "9.9.9" }],
    ["another archive", { integrity: `sha512-${Buffer.alloc(64).toString("base64")}` }],
  ] as const) {
    test(`a statement about ${title} is refused`, async () => {
      await using site = await openAttested(statement);
      await site.refuses("shop", "PROVENANCE_INVALID", refusal);
    });
  }

  test("a changed statement is refused", async () => {
    await using site = await openAttested({}, ({ dsseEnvelope }) => {
      const text = Buffer.from(dsseEnvelope.payload, "base64").toString();
      dsseEnvelope.payload = Buffer.from(text.replace("alice", "mallory")).toString("base64");
    });
    await site.refuses("shop", "PROVENANCE_INVALID", refusal);
  });

  test("a statement that is not in the transparency log is refused", async () => {
    await using site = await openAttested({}, ({ verificationMaterial }) => {
      for (const entry of verificationMaterial.tlogEntries)
        entry.inclusionPromise.signedEntryTimestamp = Buffer.alloc(70).toString("base64");
    });
    await site.refuses("shop", "PROVENANCE_INVALID", refusal);
  });

  test("a statement whose certificate is from an unknown authority is refused", async () => {
    await using site = await openAttested();
    await attest(site, await TestSigstore.make(), {});
    await site.refuses("shop", "PROVENANCE_INVALID", refusal);
    site.set({ verifyProvenance: false });
    assert.deepEqual((await site.fetch()).version.verified, ["integrity", "signature"]);
  });

  test("provenance that is missing by now, and another repository, need consent", async () => {
    await using site = await openAttested();
    const attested = (await site.fetch()).version;
    await site.publish();
    const bare = (await site.fetch()).version;
    assert.deepEqual(
      changesBetween(attested, bare).map(({ text }) => text),
      [
        "Other repository: https://git.example/alice/shop becomes unknown",
        "No provenance any longer: that of 1.0.0 was verified",
      ],
    );
  });
});

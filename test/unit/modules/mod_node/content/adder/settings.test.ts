import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { addSettings, type UnixfsAddOptions } from "#node/content/adder/settings.ts";

describe("CID version and raw leaves determine each other", () => {
  const rows: readonly (readonly [UnixfsAddOptions, version: number, rawLeaves: boolean])[] = [
    [{}, 0, false],
    [{ rawLeaves: true }, 0, true],
    [{ cidVersion: 1 }, 1, true],
    [{ cidVersion: 1, rawLeaves: false }, 1, false],
    [{ cidVersion: -3 }, 0, false],
    [{ hash: "SHA2-512" }, 1, true],
    [{ hash: "sha2-512", cidVersion: -1 }, 1, true],
    [{ nocopy: true }, 0, true],
  ];
  for (const [options, version, rawLeaves] of rows) {
    test(JSON.stringify(options), () => {
      const settings = addSettings(options);
      assert.deepEqual([settings.version, settings.rawLeaves], [version, rawLeaves]);
    });
  }
});

describe("options that exclude each other are rejected with the reference's texts", () => {
  const rows: readonly (readonly [UnixfsAddOptions, message: string])[] = [
    [{ hash: "Nothing" }, "unrecognized hash function: nothing"],
    [{ cidVersion: 2 }, "unknown CID version: 2"],
    [{ cidVersion: 2, hash: "sha1" }, "unknown CID version: 2"],
    [{ cidVersion: 0, hash: "sha2-512" }, "CIDv0 only supports sha2-256"],
    [{ nocopy: true, rawLeaves: false }, "nocopy option requires '--raw-leaves' to be enabled as well"],
  ];
  for (const [options, message] of rows) {
    test(message, () => assert.throws(() => addSettings(options), { message }));
  }
});

test("an invalid chunker is rejected at the first file, and not before", () => {
  const { chunker } = addSettings({ chunker: "size-0" });
  assert.throws(chunker, { message: "chunker size must be greater than 0" });
});

test("blocks become part of their CIDs only on request", () => {
  assert.equal(addSettings({ inlineLimit: 50 }).inlineLimit, undefined);
  assert.equal(addSettings({ inline: true }).inlineLimit, 32);
  assert.equal(addSettings({ inline: true, inlineLimit: 50 }).inlineLimit, 50);
});

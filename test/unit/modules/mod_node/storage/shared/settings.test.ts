import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { convert } from "#core/config/convert.ts";
import { options } from "#node/module/options.ts";
import { STORE_DEFAULTS } from "#node/storage/shared/defaults.ts";
import { blockSettings, requireStoreSettings, type SharedStoreSettings } from "#node/storage/shared/settings.ts";

const check = (more: Partial<SharedStoreSettings> = {}) =>
  requireStoreSettings({ s3: "s3://bucket/some/prefix", sql: "postgres://user@db/modhost", ...more }, {});

describe("settings of a shared store", () => {
  test("two addresses are enough, and a database may have several hosts", () => {
    check();
    check({
      s3: "s3://bucket",
      endpoint: "http://127.0.0.1:9000/",
      sql: "postgres://u:p@one:5432,two:5433/x?schema=a",
    });
  });

  test("sizes are in bytes, and the grace period in seconds is passed on in milliseconds", () => {
    const given = { s3: "", sql: "", cache: 1, segment: 2, grace: 3 };
    assert.deepEqual(blockSettings(given), { cacheBytes: 1, segmentBytes: 2, graceMs: 3000 });
    assert.equal(blockSettings({ s3: "", sql: "" }).graceMs, undefined);
  });

  test("the option has the same defaults", () => {
    const { cache, segment, grace } = options.node_store.fields;
    const said = { cache, segment, grace };
    const values = Object.entries(said).map(([name, field]) => [name, convert(field, name, field.default, "/")]);
    const store: SharedStoreSettings = { s3: "", sql: "", ...Object.fromEntries(values) };
    assert.deepEqual(blockSettings(store), STORE_DEFAULTS);
  });

  const wrong: readonly (readonly [what: string, given: Partial<SharedStoreSettings>, named: RegExp])[] = [
    ["a bucket by another scheme", { s3: "https://bucket" }, /names no bucket/],
    ["a prefix that leads elsewhere", { s3: "s3://bucket/a//b" }, /prefix must not/],
    ["another database", { sql: "mysql://u:hunter2@db/x" }, /address of the database is postgres:/],
    [
      "an unknown sslmode",
      { sql: "postgres://u:hunter2@db/x?sslmode=bogus" },
      /sslmode=bogus: there are disable, prefer/,
    ],
    ["a relative path", { sql: "postgres://u:hunter2@db/x?sslmode=require&sslrootcert=ca.pem" }, /must be absolute/],
    [
      "a certificate without TLS",
      { sql: "postgres://u:hunter2@db/x?sslrootcert=/ca.pem" },
      /needs sslmode=verify-full/,
    ],
    ["an endpoint with a path", { endpoint: "https://x/y" }, /is not the endpoint of an object store/],
    ["an endpoint with a password", { endpoint: "https://u:hunter2@x" }, /has no user and password/],
  ];
  for (const [what, given, named] of wrong) {
    test(`${what} is refused with the reason, and without a password`, () => {
      assert.throws(
        () => check(given),
        ({ message }: Error) => named.test(message) && !message.includes("hunter2"),
      );
    });
  }
});

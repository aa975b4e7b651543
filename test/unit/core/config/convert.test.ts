import assert from "node:assert/strict";
import { homedir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { convert } from "#core/config/index.ts";
import type { OptionDeclaration, OptionType } from "#core/types.ts";
import { ModhostError } from "#core/util/errors.ts";

const folder = "/etc/modhost";

function read(type: OptionType, value: unknown, more: Partial<OptionDeclaration> = {}): unknown {
  return convert({ type, describe: "", ...more }, "option", value, folder);
}

const accepted: [OptionType, unknown, unknown, Partial<OptionDeclaration>?][] = [
  ["string", "text", "text"],
  ["number", "1.5", 1.5],
  ["number", 0.5, 0.5, { min: 0.5, max: 1 }],
  ["integer", "12", 12],
  ["boolean", "true", true],
  ["boolean", 1, true],
  ["boolean", "0", false],
  ["period", 30, 30],
  ["period", "250ms", 0.25],
  ["period", "90s", 90],
  ["period", "10m", 600],
  ["period", "2h", 7200],
  ["period", "1d", 86_400],
  ["period", "1.5 h", 5400],
  ["size", 1024, 1024],
  ["size", "64", 64],
  ["size", "10MB", 10_000_000],
  ["size", "1.5 kB", 1500],
  ["size", "64KiB", 65_536],
  ["size", "2g", 2_000_000_000],
  ["size", "1GiB", 2 ** 30],
  ["url", "https://www.example.org/", "https://www.example.org/"],
  ["path", "certs/a.pem", join(folder, "certs/a.pem")],
  ["path", "/var/lib/x", "/var/lib/x"],
  ["path", "~/x", join(homedir(), "x")],
  ["path", "~x/~", join(folder, "~x/~")],
  ["enum", "b", "b", { values: ["a", "b"] }],
  ["strings", "one", ["one"]],
  ["strings", ["one", "two"], ["one", "two"]],
  ["strings", [], []],
  ["ports", 5280, [5280]],
  ["ports", ["0", 65_535], [0, 65_535]],
  ["object", { a: 1 }, { a: 1 }],
  ["any", [1], [1]],
];

const refused: [OptionType, unknown, string, Partial<OptionDeclaration>?][] = [
  ["string", 12, "text"],
  ["number", "", "a number"],
  ["number", Number.NaN, "a number"],
  ["number", 2, "a number from 0 to 1", { min: 0, max: 1 }],
  ["integer", 1.5, "an integer"],
  ["integer", -1, "an integer from 0 (bytes)", { min: 0, unit: "bytes" }],
  ["integer", 10, "an integer up to 9", { max: 9 }],
  ["boolean", "yes", "true or false"],
  ["period", "10 minutes", "a number of seconds"],
  ["period", -1, "a number of seconds"],
  ["period", "2d", "to 86400", { max: 86_400 }],
  ["size", "10 apples", "a number of bytes"],
  ["size", 1.5, "a number of bytes"],
  ["size", -1, "a number of bytes"],
  ["size", "2MB", ", from 0 to 1000", { min: 0, max: 1000 }],
  ["size", "9000000TiB", "a number of bytes"],
  ["url", "www.example.org", "a URL such as"],
  ["url", "ftp://www.example.org", "a URL such as"],
  ["path", "", "the path of a file or folder"],
  ["enum", "c", "one of a, b", { values: ["a", "b"] }],
  ["strings", ["one", 2], "a list of texts"],
  ["ports", 65_536, "a list of ports from 0 to 65535"],
  ["ports", [80, -1], "a list of ports"],
  ["object", [], "an object"],
  ["object", new Date(), "an object"],
  ["string", 50, 'it must be text, such as "50/s"', { example: "50/s" }],
  ["object", "k", 'it must be an object, such as {"a":"/"}', { example: { a: "/" } }],
  ["strings", 1, 'it must be a list of texts, such as ["a"]', { example: ["a"] }],
];

describe("convert", () => {
  for (const [type, value, expected, more] of accepted) {
    test(`reads ${JSON.stringify(value)} as ${type}`, () => assert.deepEqual(read(type, value, more), expected));
  }

  for (const [type, value, allowed, more] of refused) {
    test(`refuses ${JSON.stringify(value)} as ${type} and says what is allowed`, () => {
      assert.throws(
        () => read(type, value, more),
        (error) => {
          assert.ok(ModhostError.is(error));
          assert.equal(error.code, "OPTION_INVALID");
          assert.match(error.message, /^Option option is /);
          assert.ok(error.message.includes(allowed), error.message);
          return true;
        },
      );
    });
  }

  const entries = {
    key: { type: "path", describe: "" },
    bits: { type: "integer", default: 256, describe: "" },
  } as const;

  test("reads the fields of an object's entries, with their defaults", () => {
    assert.deepEqual(read("object", { a: { key: "k.pem" } }, { entries }), {
      a: { key: join(folder, "k.pem"), bits: 256 },
    });
  });

  test("leaves out fields that are optional", () => {
    const ca = { type: "path", required: false, describe: "" } as const;
    assert.deepEqual(read("object", { a: {} }, { entries: { ca } }), { a: {} });
    assert.deepEqual(read("object", { a: { ca: "ca.pem" } }, { entries: { ca } }), {
      a: { ca: join(folder, "ca.pem") },
    });
  });

  test("reads an object's own fields by the same rules", () => {
    const fields = { ...entries, wait: { type: "period", required: false, describe: "" } } as const;
    assert.deepEqual(read("object", { key: "k.pem" }, { fields }), { key: join(folder, "k.pem"), bits: 256 });
    assert.deepEqual(read("object", { key: "k.pem", bits: 5, wait: "1m" }, { fields }), {
      key: join(folder, "k.pem"),
      bits: 5,
      wait: 60,
    });
    assert.throws(() => read("object", {}, { fields }), /option\.key is not set/);
    assert.throws(() => read("object", { key: "k", kye: 1 }, { fields }), /option\.kye .* fields are key, bits, wait/);
    assert.throws(() => read("object", { key: "k", bits: "many" }, { fields }), /option\.bits is "many"/);
    assert.throws(() => read("object", "k", { fields }), /option is "k", but it must be an object/);
  });

  test("names the field of an entry that is missing, unknown or wrong", () => {
    assert.throws(() => read("object", { a: {} }, { entries }), /option\.a\.key is not set/);
    assert.throws(
      () => read("object", { a: { key: "k", kye: 1 } }, { entries }),
      /option\.a\.kye .* fields are key, bits/,
    );
    assert.throws(
      () => read("object", { a: "k" }, { entries }),
      /option\.a is "k", but it must be an object with key, bits/,
    );
  });

  test("shortens long values in messages", () => {
    assert.throws(
      () => read("integer", "x".repeat(1000)),
      (error: Error) => error.message.length < 200,
    );
  });
});

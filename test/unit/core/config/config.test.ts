import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { environmentOptions } from "#core/config/config.ts";
import { Config, configFrom, nearest } from "#core/config/index.ts";
import type { OptionDeclarations } from "#core/types.ts";
import { ModhostError } from "#core/util/errors.ts";

const declarations = {
  http_ports: { type: "ports", default: [5280], per_host: false, describe: "" },
  http_paths: { type: "object", describe: "" },
  idle: { type: "period", default: "2m", min: 1, describe: "" },
  name: { type: "string", describe: "" },
  folder: { type: "path", default: "./www", describe: "" },
} as const satisfies OptionDeclarations;

function config(written: Record<string, unknown>, env: NodeJS.ProcessEnv = {}, values: Record<string, unknown> = {}) {
  const made = new Config({ written, environment: environmentOptions(env), values, directory: "/srv" });
  made.declare(declarations, "mod_test");
  return made;
}

function problemsOf(made: Config): string[] {
  try {
    made.check();
  } catch (error) {
    assert.ok(ModhostError.is(error));
    assert.equal(error.code, "CONFIG_INVALID");
    return error.message
      .split("\n")
      .slice(1)
      .map((line) => line.trim());
  }
  return [];
}

describe("values", () => {
  test("a default is given converted, null counts as not set", () => {
    const made = config({ idle: null });
    assert.equal(made.value("idle"), 120);
    assert.equal(made.value("folder"), "/srv/www");
    assert.equal(made.value("name"), undefined);
    assert.equal(made.raw("idle"), undefined);
  });

  test("a host's own value comes before the server's", () => {
    const made = config({ name: "server", hosts: { "A.example": { name: "own" }, "b.example": null } });
    assert.deepEqual(made.hosts(), ["a.example", "b.example"]);
    assert.equal(made.value("name", "a.example"), "own");
    assert.equal(made.value("name", "b.example"), "server");
    assert.equal(made.value("name"), "server");
  });

  test("a name that nobody declares is given as written", () => {
    assert.deepEqual(config({ other: ["x"] }).value("other"), ["x"]);
  });

  test("names that every object has are not taken for values", () => {
    assert.equal(config({}).raw("constructor"), undefined);
    assert.equal(config({ hosts: { a: {} } }).raw("toString", "a"), undefined);
  });
});

describe("environment", () => {
  test("a variable wins over the file, the caller over the variable", () => {
    const env = { MODHOST_NAME: "variable", MODHOST_IDLE: "30s" };
    const made = config({ name: "file", idle: 5 }, env, { idle: 7 });
    assert.equal(made.value("name"), "variable");
    assert.equal(made.value("idle"), 7);
  });

  test("lists are JSON or separated by commas, objects are JSON", () => {
    const text = config({}, { MODHOST_HTTP_PORTS: "80, 8080", MODHOST_HTTP_PATHS: '{"hello":"/"}' });
    assert.deepEqual(text.value("http_ports"), [80, 8080]);
    assert.deepEqual(text.value("http_paths"), { hello: "/" });
    assert.deepEqual(config({}, { MODHOST_HTTP_PORTS: "[0]" }).value("http_ports"), [0]);
    assert.deepEqual(config({}, { MODHOST_HTTP_PORTS: "" }).value("http_ports"), []);
  });

  test("variables count in any case, and the one in capitals goes first", () => {
    assert.equal(config({}, { MODHOST_idle: "30s" }).value("idle"), 30);
    assert.equal(config({}, { modhost_idle: "30s" }).value("idle"), 30);
    for (const names of [
      ["MODHOST_IDLE", "modhost_idle"],
      ["modhost_idle", "MODHOST_IDLE"],
    ]) {
      const env = Object.fromEntries(names.map((name) => [name, name === "MODHOST_IDLE" ? "1s" : "2s"]));
      assert.equal(config({}, env).value("idle"), 1);
    }
  });

  test("text of a string option stays text", () => {
    assert.equal(config({}, { MODHOST_NAME: "12" }).value("name"), "12");
  });

  test("a wrong variable is named as such", () => {
    assert.deepEqual(problemsOf(config({}, { MODHOST_HTTP_PATHS: "hello" })), [
      'MODHOST_HTTP_PATHS is "hello", but it must be an object',
    ]);
  });

  test("numbers that JSON does not know are shown as they are", () => {
    assert.deepEqual(problemsOf(config({ name: Number.POSITIVE_INFINITY, folder: Number.NaN })), [
      "name is Infinity, but it must be text",
      "folder is NaN, but it must be the path of a file or folder",
    ]);
  });

  test("hosts may come from a variable", () => {
    assert.deepEqual(config({}, { MODHOST_HOSTS: '{"a.example":{}}' }).hosts(), ["a.example"]);
  });
});

describe("check", () => {
  test("lists every problem with path, value and what is allowed", () => {
    const made = config({
      http_ports: 99_999,
      log_level: "loud",
      idle: 0,
      hosts: { "a.example": { idle: "soon", http_ports: [80] }, "b c": {}, d: 1, "*": {} },
    });
    assert.deepEqual(problemsOf(made), [
      "hosts.b c is {}, but its name must be a host name without port",
      "hosts.d is 1, but it must be an object with the options of this host",
      "hosts.* is {}, but its name must be a host name without port",
      'log_level is "loud", but it must be one of debug, info, warn, error',
      "http_ports is 99999, but it must be a list of ports from 0 to 65535",
      'idle is 0, but it must be a number of seconds or text such as "90s", "10m", "2h", "1d", from 1',
      'hosts.a.example.idle is "soon", but it must be a number of seconds or text such as "90s", "10m", "2h", "1d", from 1',
      "hosts.a.example.http_ports is [80], but http_ports is an option of the whole server: move it out of hosts",
    ]);
  });

  test("names the file", () => {
    const made = new Config({ written: { log_level: 1 }, file: "/srv/modhost.config.yaml", directory: "/srv" });
    assert.match(problemsOf(made)[0] ?? "", /^modhost\.config\.yaml: log_level is 1/);
  });

  test("two spellings of one host are a problem", () => {
    assert.match(
      problemsOf(configFrom({ hosts: { a: {}, A: {} } }))[0] ?? "",
      /^hosts\.A .* the host a is there already/,
    );
  });

  test("two hosts that differ in a final dot are one", () => {
    assert.match(
      problemsOf(configFrom({ hosts: { "a.test": {}, "A.test.": {} } }))[0] ?? "",
      /^hosts\.A\.test\. .* the host a\.test is there already/,
    );
  });

  test("a host keeps the options that stand below its name with a final dot", () => {
    const made = configFrom({ name: "server", hosts: { "a.test.": { name: "host" } } });
    assert.deepEqual(made.hosts(), ["a.test"]);
    assert.equal(made.value("name", "a.test"), "host");
  });

  test("what no request can name is no host", () => {
    for (const name of [".", "a..", "a?b", "a#b", "a\\b", "a@b", "a/b", "a b", "[::1]x", "", "*.test"]) {
      assert.match(problemsOf(configFrom({ hosts: { [name]: {} } }))[0] ?? "", /its name must be a host name/, name);
    }
  });

  test("says nothing about a configuration that holds", () => {
    assert.deepEqual(problemsOf(config({ http_ports: [], hosts: { "[::1]": { name: "x" } } })), []);
  });

  test("value() of a wrong option throws, naming it", () => {
    assert.throws(() => config({ idle: "soon" }).value("idle"), {
      code: "OPTION_INVALID",
      message: /^Option idle is "soon"/,
    });
  });
});

describe("unknown names", () => {
  test("are given with the nearest known one, where one is near", () => {
    const made = config(
      { http_prots: 1, zebra: 1, $schema: "x", hosts: { a: { nmae: 1 } } },
      { MODHOST_LOG_LEVLE: "info" },
    );
    assert.deepEqual(made.unknownNames(), [
      { path: "http_prots", nearest: "http_ports" },
      { path: "zebra", nearest: undefined },
      { path: "MODHOST_LOG_LEVLE", nearest: "MODHOST_LOG_LEVEL" },
      { path: "hosts.a.nmae", nearest: "name" },
    ]);
  });

  test("a name that was asked for is known", () => {
    const made = config({ zebra: 1 });
    made.raw("zebra");
    assert.deepEqual(made.unknownNames(), []);
  });

  test("nearest() allows one edit for four characters", () => {
    assert.equal(nearest("chekc", ["check", "run"]), "check");
    assert.equal(nearest("rn", ["run"]), "run");
    assert.equal(nearest("stop", ["check", "run"]), undefined);
  });
});

describe("declare", () => {
  const option = { type: "integer", describe: "" } as const;

  test("an owner may replace its declarations, others may only repeat them", () => {
    const made = configFrom({ size: "big" });
    made.declare({ size: option }, "mod_a");
    made.declare({ size: option }, "mod_b");
    assert.throws(() => made.declare({ size: { type: "string", describe: "" } }, "mod_b"), {
      code: "MODULE_INVALID",
      message: /mod_b .* size is declared otherwise by mod_a/,
    });
    made.declare({ size: { type: "string", describe: "" } }, "mod_a");
    assert.equal(made.value("size"), "big");
    assert.equal(made.declarations().get("size")?.owner, "mod_a");
  });

  for (const [name, declaration, reason] of [
    ["Size", option, /lower case/],
    ["size", { type: "int", describe: "" }, /needs a type: one of string/],
    ["size", { type: "integer" }, /needs a sentence/],
    ["size", { ...option, default: 1.5 }, /has the default 1.5, but it must be an integer/],
  ] as const) {
    test(`refuses ${name}: ${JSON.stringify(declaration)}`, () => {
      const wrong = { [name]: declaration } as unknown as OptionDeclarations;
      assert.throws(() => configFrom({}).declare(wrong, "mod_a"), { code: "MODULE_INVALID", message: reason });
    });
  }
});

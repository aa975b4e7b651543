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

describe("the value of an option", () => {
  test("is the converted default if the option is not set or null", () => {
    const made = config({ idle: null });
    assert.equal(made.value("idle"), 120);
    assert.equal(made.value("folder"), "/srv/www");
    assert.equal(made.value("name"), undefined);
    assert.equal(made.raw("idle"), undefined);
  });

  test("is the host's own value before that of the server", () => {
    const made = config({ name: "server", hosts: { "A.example": { name: "own" }, "b.example": null } });
    assert.deepEqual(made.hosts(), ["a.example", "b.example"]);
    assert.equal(made.value("name", "a.example"), "own");
    assert.equal(made.value("name", "b.example"), "server");
    assert.equal(made.value("name"), "server");
  });

  test("is returned as written if no module declares the option", () => {
    assert.deepEqual(config({ other: ["x"] }).value("other"), ["x"]);
  });

  test("is undefined for names that every JavaScript object has", () => {
    assert.equal(config({}).raw("constructor"), undefined);
    assert.equal(config({ hosts: { a: {} } }).raw("toString", "a"), undefined);
  });
});

describe("an environment variable", () => {
  test("takes precedence over the file, and the caller over the variable", () => {
    const env = { MODHOST_NAME: "variable", MODHOST_IDLE: "30s" };
    const made = config({ name: "file", idle: 5 }, env, { idle: 7 });
    assert.equal(made.value("name"), "variable");
    assert.equal(made.value("idle"), 7);
  });

  test("has lists as JSON or separated by commas, and objects as JSON", () => {
    const text = config({}, { MODHOST_HTTP_PORTS: "80, 8080", MODHOST_HTTP_PATHS: '{"hello":"/"}' });
    assert.deepEqual(text.value("http_ports"), [80, 8080]);
    assert.deepEqual(text.value("http_paths"), { hello: "/" });
    assert.deepEqual(config({}, { MODHOST_HTTP_PORTS: "[0]" }).value("http_ports"), [0]);
    assert.deepEqual(config({}, { MODHOST_HTTP_PORTS: "" }).value("http_ports"), []);
  });

  test("may be written in any case, and the one in capitals takes precedence", () => {
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

  test("that sets a text option stays text", () => {
    assert.equal(config({}, { MODHOST_NAME: "12" }).value("name"), "12");
  });

  test("with a wrong value is named in the error", () => {
    assert.deepEqual(problemsOf(config({}, { MODHOST_HTTP_PATHS: "hello" })), [
      'MODHOST_HTTP_PATHS is "hello", but it must be an object',
    ]);
  });

  test("cannot be infinite: the message shows numbers that JSON does not have", () => {
    assert.deepEqual(problemsOf(config({ name: Number.POSITIVE_INFINITY, folder: Number.NaN })), [
      "name is Infinity, but it must be text",
      "folder is NaN, but it must be the path of a file or folder",
    ]);
  });

  test("may contain the hosts", () => {
    assert.deepEqual(config({}, { MODHOST_HOSTS: '{"a.example":{}}' }).hosts(), ["a.example"]);
  });
});

describe("the check of a configuration", () => {
  test("lists every problem with its path, the value and what is allowed", () => {
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

  test("refuses two spellings of one host", () => {
    assert.match(
      problemsOf(configFrom({ hosts: { a: {}, A: {} } }))[0] ?? "",
      /^hosts\.A .* the host a is listed twice/,
    );
  });

  test("treats two hosts that differ only in a final dot as one", () => {
    assert.match(
      problemsOf(configFrom({ hosts: { "a.test": {}, "A.test.": {} } }))[0] ?? "",
      /^hosts\.A\.test\. .* the host a\.test is listed twice/,
    );
  });

  test("keeps the options below a host name with a final dot", () => {
    const made = configFrom({ name: "server", hosts: { "a.test.": { name: "host" } } });
    assert.deepEqual(made.hosts(), ["a.test"]);
    assert.equal(made.value("name", "a.test"), "host");
  });

  test("refuses host names that no request can name", () => {
    for (const name of [".", "a..", "a?b", "a#b", "a\\b", "a@b", "a/b", "a b", "[::1]x", "", "*.test"]) {
      assert.match(problemsOf(configFrom({ hosts: { [name]: {} } }))[0] ?? "", /its name must be a host name/, name);
    }
  });

  test("finds no problem in a valid configuration", () => {
    assert.deepEqual(problemsOf(config({ http_ports: [], hosts: { "[::1]": { name: "x" } } })), []);
  });

  test("value() throws for a wrong option, and names it", () => {
    assert.throws(() => config({ idle: "soon" }).value("idle"), {
      code: "OPTION_INVALID",
      message: /^Option idle is "soon"/,
    });
  });
});

describe("an unknown option", () => {
  test("is listed with the nearest known name, if one is near", () => {
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

  test("counts as known after it was read", () => {
    const made = config({ zebra: 1 });
    made.raw("zebra");
    assert.deepEqual(made.unknownNames(), []);
  });

  test("nearest() allows one edit for every four characters", () => {
    assert.equal(nearest("chekc", ["check", "run"]), "check");
    assert.equal(nearest("rn", ["run"]), "run");
    assert.equal(nearest("stop", ["check", "run"]), undefined);
  });
});

describe("declare", () => {
  const option = { type: "integer", describe: "" } as const;

  test("lets an owner replace its own declarations, and others only repeat them", () => {
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

/** Names in a configuration: merged, repeated, and misspelt ones of options with `protects`. */
import assert from "node:assert/strict";
import { mkdtempSync } from "node:fs";
import { rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { type Config, configFrom, loadConfig, positionIn } from "#core/config/index.ts";

const folder = mkdtempSync(join(tmpdir(), "modhost-names-"));
after(() => rm(folder, { recursive: true }));

/** Loads the configuration from a file with this text. */
async function read(text: string, name = "modhost.config.yaml", env: NodeJS.ProcessEnv = {}): Promise<Config> {
  await writeFile(join(folder, name), text);
  return loadConfig({ cwd: folder, path: name, env });
}

const guard = { "*": { deny: ["0.0.0.0/0", "::/0"] } };
const guardText = `http_guard: { "*": { deny: ["0.0.0.0/0", "::/0"] } }`;

describe("a merge key of YAML", () => {
  for (const [where, text, host] of [
    ["in an entry of hosts", `hosts:\n  a.test: &x { ${guardText} }\n  b.test: { <<: *x }\n`, "b.test"],
    ["at the top level", `$all: &x { ${guardText} }\n<<: *x\n`, undefined],
    ["with a map of its own", `hosts: { b.test: { <<: { ${guardText} } } }\n`, "b.test"],
    [
      "with a list of maps",
      `$a: &a { log_level: warn }\n$b: &b { ${guardText} }\nhosts: { b.test: { <<: [*a, *b] } }\n`,
      "b.test",
    ],
    ["through another merge", `$a: &a { ${guardText} }\n$b: &b { <<: *a }\nhosts: { b.test: { <<: *b } }\n`, "b.test"],
    ["within an option", `$a: &a { deny: ["0.0.0.0/0", "::/0"] }\nhttp_guard: { "*": { <<: *a } }\n`, undefined],
    ["of a text in YAML 1.1", `%YAML 1.1\n---\n$all: &x { ${guardText} }\n<<: *x\n`, undefined],
  ] as const) {
    test(`adds its entries to the map ${where}`, async () => {
      for (const name of ["modhost.config.yaml", ".modhostrc"]) {
        const config = await read(text, name);
        assert.deepEqual(config.value("http_guard", host), guard);
        assert.deepEqual(config.unknownNames(), []);
      }
    });
  }

  test("keeps the map's own entries, and prefers the first of several sources", async () => {
    const config = await read(
      "$a: &a { one: 1, two: 1, three: 1 }\n$b: &b { two: 2, four: 2 }\nin: { three: 3, <<: [*b, *a], one: 3 }\n",
    );
    assert.deepEqual(config.value("in"), { three: 3, two: 2, four: 2, one: 3 });
  });

  const merges: [what: string, text: string, result: Record<string, unknown>][] = [
    ["an alias of a list", "$l: &l [{ a: 1 }, { a: 2, b: 2 }]\nin: { <<: *l }", { a: 1, b: 2 }],
    ["two keys in one map", "$a: &a { a: 1 }\n$b: &b { a: 2, b: 2 }\nin: { <<: *a, <<: *b }", { a: 1, b: 2 }],
    ["an anchor within a merged map", "$a: { <<: &b { a: 1 }, b: 1 }\nin: { <<: *b }", { a: 1 }],
    ["the latest of two anchors of a name", "$a: &a { a: 1 }\n$b: &a { a: 2 }\nin: { <<: *a }", { a: 2 }],
    [
      "no map below one of the map's own names",
      "$a: &a { a: { x: 1, y: 1 } }\nin: { <<: *a, a: { x: 2 } }",
      { a: { x: 2 } },
    ],
    ["nothing over an empty entry", "$a: &a { a: 1 }\nin: { <<: *a, a: }", { a: null }],
    [
      "names that are numbers as they are written",
      "$a: &a { 1.10: 1, 1.1: 2 }\nin: { <<: *a, 1.1: 3 }",
      { "1.10": 1, "1.1": 3 },
    ],
    ["nothing from an empty map or list", "in: { <<: {}, a: { <<: [] } }", { a: {} }],
  ];
  for (const [what, text, result] of merges) {
    test(`merges ${what}`, async () => assert.deepEqual((await read(text)).value("in"), result));
  }

  test("can be used in any number of maps", async () => {
    const names = Array.from({ length: 300 }, (_, at) => `h${at}.test`);
    const config = await read(
      `$x: &x { ${guardText} }\nhosts:\n${names.map((name) => `  ${name}: { <<: *x }\n`).join("")}`,
    );
    assert.deepEqual(config.hosts(), names);
    for (const name of names) assert.deepEqual(config.value("http_guard", name), guard);
  });

  test("causes an error with its position if its value is not a map", async () => {
    for (const value of ["5", "", "[1]", "text"]) {
      await assert.rejects(
        read(`log_level: info\nhosts:\n  a.test:\n    <<: ${value}\n`),
        /line 4, column 5: the value of << must be a map/,
      );
    }
  });

  test("gives a merged option the position of the merged entry", async () => {
    const text = `hosts:\n  a.test: &x\n    http_guard:\n      probe: { denny: 1 }\n  b.test:\n    <<: *x\n`;
    assert.deepEqual(await positionIn(text, "hosts.b.test.http_guard.probe.denny"), { line: 4, column: 16 });
  });

  test("is refused in quotes, in JSON and in objects of scripts, which merge nothing", async () => {
    const values = { hosts: { "a.test": { "<<": { http_guard: guard } } } };
    const said = /hosts\.a\.test\.<< is set, but only YAML merges/;
    for (const config of [
      await read(`hosts: { a.test: { "<<": { ${guardText} } } }`),
      await read(JSON.stringify(values), "modhost.config.json"),
      await read(`export default ${JSON.stringify(values)};`, "modhost.config.mjs"),
      configFrom(values),
    ]) {
      assert.throws(() => config.check(), said);
    }
    assert.throws(() => configFrom({ "<<": { http_guard: guard } }).check(), /<< is set, but only YAML merges/);
  });
});

describe("aliases", () => {
  const doubled = (first: string, next: (before: string) => string) =>
    Array.from({ length: 30 }, (_, at) => `a${at}: &a${at} ${at === 0 ? first : next(`*a${at - 1}`)}\n`).join("");

  test("that expand exponentially are refused quickly", async () => {
    const bomb = doubled("[x, x]", (before) => `[${Array(10).fill(before)}]`);
    await assert.rejects(read(bomb), /line 2, column 10: aliases expand this text to more than 250000 values/);
  });

  test("that merge the same map repeatedly yield it once", async () => {
    const config = await read(doubled("{ x: 1 }", (before) => `{ <<: [${Array(10).fill(before)}] }`));
    assert.deepEqual(config.value("a29"), { x: 1 });
  });

  test("inside their own value are refused", async () => {
    for (const text of ["a: &a { <<: *a }", "a: &a { b: *a }", "a: &a [*a]"]) {
      await assert.rejects(read(text), /an alias refers to a value that contains it/);
    }
  });
});

describe("a repeated name", () => {
  for (const [name, text, position] of [
    ["modhost.config.yaml", "log_level: warn\nhttp_guard:\n  a: { rate: 1/s }\n  a: {}\n", "line 4, column 3"],
    ["modhost.config.yaml", "http_guard:\n  1: { rate: 1/s }\n  '1': {}\n", "line 3, column 3"],
    ["modhost.config.json", '{ "http_guard": { "a": { "rate": "1/s" },\n "a": {} } }', "line 2, column 2"],
    ["modhost.config.json", '{ "hosts": {}, "host\\u0073": {} }', "line 1, column 16"],
    ["package.json", '{ "modhost": { "log_level": "warn", "log_level": "info" } }', "line 1, column 37"],
  ] as const) {
    test(`is refused: ${name} with ${JSON.stringify(text)}`, async () => {
      await assert.rejects(read(text, name), new RegExp(`${position}:`));
    });
  }

  test("is allowed in different objects, as a value, and outside of the host's part of package.json", async () => {
    const text = '{ "a": { "x": "a" }, "b": [{ "x": ["x", "x"] }, { "x": "\\"x\\": 1" }], "x": "a" }';
    assert.deepEqual((await read(text, "modhost.config.json")).value("x"), "a");
    const manifest = '{ "a": { "x": 1, "x": 2 }, "modhost": { "log_level": "warn" } }';
    await writeFile(join(folder, "package.json"), manifest);
    for (const name of ["modhost.config.yaml", "modhost.config.json", "modhost.config.mjs", ".modhostrc"]) {
      await rm(join(folder, name), { force: true });
    }
    assert.equal((await loadConfig({ cwd: folder, env: {} })).value("log_level"), "warn");
  });

  test("is refused in an environment variable", async () => {
    const config = await read("{}", "modhost.config.yaml", { MODHOST_HTTP_PATHS: '{"a": "/x", "a": "/y"}' });
    assert.throws(() => config.check(), /MODHOST_HTTP_PATHS is set, but one of its names occurs twice/);
    const merging = await read("{}", "modhost.config.yaml", { MODHOST_HOSTS: '{"a.test": {"<<": {}}}' });
    assert.throws(() => merging.check(), /MODHOST_HOSTS\.a\.test\.<< is set, but only YAML merges/);
  });
});

test("an error in a text contains its position only once", async () => {
  for (const [name, text] of [
    ["modhost.config.yaml", "a: 1\nb: *x\n"],
    ["modhost.config.json", '{\n "a": 1\n "b": 2 }'],
  ] as const) {
    await assert.rejects(read(text, name), (error: Error) => error.message.match(/line|:\d/g)?.length === 1);
  }
});

describe("a name in a config file", () => {
  test("in YAML is the text as written", async () => {
    const config = await read("names: { 1.10: a, 1.1: b, 0x10: c, 1e3: d, true: e, ~: f }");
    assert.deepEqual(config.value("names"), { "1.10": "a", "1.1": "b", "0x10": "c", "1e3": "d", true: "e", "~": "f" });
  });

  test("is refused if it is missing or not text", async () => {
    await assert.rejects(read("a:\n  ? [b]\n  : 1\n"), /line 2, column 5: a name must be text/);
    await assert.rejects(read("a: &a b\n*a : 1\n"), /line 2, column 1: a name must be text/);
    await assert.rejects(read("a:\n  : 1\n"), /line 2, column 3: a name is missing before the colon/);
  });

  test("is refused if no object can have it", async () => {
    const text = '{ "hosts": { "__proto__": { "http_guard": {} } } }';
    for (const name of ["modhost.config.json", "modhost.config.yaml"]) {
      const config = await read(text, name);
      assert.throws(() => config.check(), /hosts\.__proto__ is set, but nothing can have this name/);
    }
  });
});

describe("a misspelt option with protects", () => {
  const declared = {
    http_guard: { type: "object", protects: true, describe: "x" },
    http_other: { type: "any", describe: "x" },
  } as const;
  const configOf = (values: Record<string, unknown>) => {
    const config = configFrom(values);
    config.declare(declared, "guard");
    return config;
  };

  for (const name of ["http_gaurd", "http_guards", "HTTP_GUARD", "Http-Guard", "httpGuard"]) {
    test(`is refused, for the server and for a host: ${name}`, () => {
      const said = new RegExp(`${name} is set, but no option has this name: write http_guard`);
      assert.throws(() => configOf({ [name]: guard }).checkNames(), said);
      assert.throws(() => configOf({ hosts: { "a.test": { [name]: guard } } }).checkNames(), said);
    });
  }

  test("is refused if it belongs to a module that is not loaded, unless that module is disabled", () => {
    const said = /http_guard is set, but the module http_guard is not loaded, .* modules_enabled/;
    const missing = (values: Record<string, unknown>) => {
      const config = configFrom(values);
      config.missGuards(new Map([["http_guard", "http_guard"]]));
      return config;
    };
    assert.throws(() => missing({ http_guard: guard }).checkNames(), said);
    assert.throws(() => missing({ hosts: { "a.test": { http_guard: guard } } }).checkNames(), said);
    assert.throws(() => missing({ http_gaurd: guard }).checkNames(), /write http_guard/);
    const disabled = configFrom({ http_guard: guard, modules_disabled: ["mod_http_guard"] });
    disabled.checkNames();
    assert.deepEqual(disabled.unknownNames(), [{ path: "http_guard", nearest: undefined }]);
    missing({ $http_guard: guard, api_tokens: ["a"] }).checkNames();
  });

  test("is refused in the environment, with the name of the variable", async () => {
    const config = await read("{}", "modhost.config.yaml", { MODHOST_HTTP_GAURD: "{}" });
    config.declare(declared, "guard");
    assert.throws(() => config.checkNames(), /MODHOST_HTTP_GAURD is set, but .* write MODHOST_HTTP_GUARD/);
  });

  test("only causes a warning if the name differs more, is nearer to another option, begins with $, or is read by a module", () => {
    const config = configOf({ zebra: 1, http_ohter: 1, $http_guard: 1, http_guarded: 1 });
    config.value("http_guarded");
    config.checkNames();
    assert.deepEqual(
      config.unknownNames().map(({ path }) => path),
      ["zebra", "http_ohter"],
    );
  });

  test("is refused if the name of an app differs only in case, and causes a warning if it differs more", () => {
    const config = configFrom({
      http_guard: { "*": {}, Notes: {} },
      hosts: { "a.test": { http_guard: { nodes: {} } }, "b.test": {} },
    });
    config.declare({ http_guard: { ...declared.http_guard, keys: "apps" } }, "guard");
    const apps = new Set(["notes", "shop"]);
    assert.throws(() => config.checkNames(apps), /http_guard\.Notes is set, but the app is named notes/);
    assert.deepEqual(config.unknownNames(apps), [
      { path: "http_guard.Notes", nearest: "notes" },
      { path: "hosts.a.test.http_guard.nodes", nearest: "notes" },
    ]);
  });
});

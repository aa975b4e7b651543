import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, test } from "node:test";
import type { Module } from "#core/types.ts";
import { hostOf, logged, pluginHost, stateOf } from "./support.ts";

const itself = (module: Module) => module;

describe("an option of a module", () => {
  const config = {
    text: "words",
    number: "2.5",
    integer: 4,
    yes: "true",
    period: "10m",
    colour: "red",
    single: "one",
    list: ["a", "b", "a"],
    table: { x: 1 },
    file: "sub/file.txt",
  };

  test("is read by its type: text forms are accepted, single values become lists, periods are seconds", async (t) => {
    const running = await hostOf(t, { itself }, { config });
    const module = running.host.exports<Module>("itself");
    assert.equal(module.get_option("table"), running.host.config.raw("table"));
    assert.equal(module.get_option_string("text"), "words");
    assert.equal(module.get_option_number("number"), 2.5);
    assert.equal(module.get_option_integer("integer", 1, 0, 10), 4);
    assert.equal(module.get_option_boolean("yes"), true);
    assert.equal(module.get_option_period("period"), 600);
    assert.equal(module.get_option_enum("colour", ["red", "blue"]), "red");
    assert.deepEqual(module.get_option_array("single"), ["one"]);
    assert.deepEqual(module.get_option_set("list"), new Set(["a", "b"]));
    assert.deepEqual(module.get_option_object("table"), { x: 1 });
    assert.equal(module.get_option_path("file"), join(process.cwd(), "sub/file.txt"));
    assert.equal(module.data_path(), running.folder);
  });

  test("has a fallback in the same forms, and a fallback path is relative to the module's folder", async (t) => {
    const running = await pluginHost(t, { "mod_itself.ts": "export default (module) => module;" });
    const module = running.host.exports<Module>("itself");
    assert.equal(module.get_option("none"), undefined);
    assert.equal(module.get_option("none", 3), 3);
    assert.equal(module.get_option_string("none"), undefined);
    assert.equal(module.get_option_period("none", "2h"), 7200);
    assert.equal(module.get_option_boolean("none", false), false);
    assert.deepEqual(module.get_option_set("none", ["x"]), new Set(["x"]));
    assert.deepEqual(module.get_option_inherited_set("none", ["x"]), new Set(["x"]));
    assert.equal(module.get_option_path("none", "www"), join(module.get_directory(), "www"));
  });

  test("is refused by name if its value is not allowed", async (t) => {
    const running = await hostOf(t, { itself }, { config });
    const module = running.host.exports<Module>("itself");
    const calls: [call: () => unknown, message: RegExp][] = [
      [() => module.get_option_integer("text"), /text is "words", but it must be an integer/],
      [() => module.get_option_integer("integer", 1, 5), /integer is 4, but it must be an integer from 5/],
      [() => module.get_option_number("integer", 1, 0, 3), /from 0 to 3/],
      [() => module.get_option_enum("colour", ["blue", "green"]), /one of blue, green/],
      [() => module.get_option_boolean("text"), /true or false/],
      [() => module.get_option_object("list"), /an object/],
    ];
    for (const [call, message] of calls) assert.throws(call, { code: "OPTION_INVALID", message });
  });

  test("is read from the host before the server, and an inherited set joins both", async (t) => {
    const hosts = { "one.example": { words: ["own"], size: 2 }, "two.example": {} };
    const running = await hostOf(t, { itself }, { config: { hosts, words: ["server"], size: 1 } });
    const one = running.host.exports<Module>("itself", "one.example");
    const other = running.host.exports<Module>("itself", "two.example");
    assert.deepEqual([one.get_option_number("size"), other.get_option_number("size")], [2, 1]);
    assert.deepEqual(one.get_option_array("words"), ["own"]);
    assert.deepEqual(one.get_option_inherited_set("words"), new Set(["server", "own"]));
    assert.deepEqual(other.get_option_inherited_set("words"), new Set(["server"]));
  });
});

describe("a hook", () => {
  test("runs by priority and then in order, and the first result other than undefined and null ends the event", async (t) => {
    const seen: string[] = [];
    const returning = (name: string, value?: unknown) => () => {
      seen.push(name);
      return value;
    };
    const running = await hostOf(t, {
      a(module) {
        module.hook("ask", returning("a0"));
        module.hook("ask", (data: { n: number }) => returning("a-1", data.n === 1 ? "low" : null)(), -1);
      },
      b(module) {
        module.hook("ask", returning("b5", null), 5);
        module.hook("ask", returning("b0"));
        return module;
      },
    });
    const module = running.host.exports<Module>("b");
    assert.equal(module.fire_event("ask", { n: 1 }), "low");
    assert.deepEqual(seen, ["b5", "a0", "b0", "a-1"]);
    assert.equal(module.fire_event("ask", { n: 2 }), undefined);
    assert.equal(module.has_hooks("ask"), true);
    assert.equal(module.has_hooks("nothing"), false);
    assert.equal(running.host.fire("ask", { n: 1 }), "low");
    assert.throws(() => module.hook("x", "no function" as never), TypeError);
  });

  test("always runs for an announced event, whatever other hooks return or throw", async (t) => {
    const seen: string[] = [];
    const running = await hostOf(t, {
      returns_true: (module) => module.hook("server-started", () => true, 2),
      throws: (module) =>
        module.hook(
          "server-started",
          () => {
            throw new Error("bad hook");
          },
          1,
        ),
      listens: (module) => module.hook("server-started", () => seen.push("heard")),
    });
    assert.deepEqual(seen, ["heard"]);
    await new Promise(setImmediate);
    assert.match(logged(running, "error")[0]?.msg ?? "", /server-started failed: bad hook/);
  });
});

describe("a shared table", () => {
  test("is found by its path: of the module itself, of another module of the host, of the whole server", async (t) => {
    const running = await hostOf(t, {
      writer(module) {
        module.shared("counts").n = 1;
        assert.equal(module.shared("counts"), module.shared("/*/writer/counts"));
        assert.notEqual(module.shared("counts"), module.shared());
      },
      reader: (module) => [module.shared("writer/counts").n, module.shared("/*/writer/counts").n],
    });
    assert.deepEqual(running.host.exports("reader"), [1, 1]);
    assert.deepEqual(stateOf(running, "writer")?.holds, { shared: 2 });
  });

  test("survives a reload, and disappears with the last module that uses it", async (t) => {
    const running = await hostOf(t, {
      a: (module) => (module.shared("/*/common").a ??= module.reloading),
      b: (module) => Object.keys(module.shared("/*/common")).length,
    });
    await running.host.reload("a");
    assert.equal(running.host.exports("a"), false);
    await running.host.unload("a");
    await running.host.reload("b");
    assert.equal(running.host.exports("b"), 1);
    await running.host.unload("b");
    await running.host.load("b");
    assert.equal(running.host.exports("b"), 0);
  });
});

test("log lines contain the module's name, and levels are methods or the first argument", async (t) => {
  const running = await hostOf(t, { itself }, { config: { hosts: { "one.example": {} } } });
  const { log } = running.host.exports<Module>("itself", "one.example");
  log.info("sent %d of %s", 3, "many");
  log("warn", "careful");
  assert.deepEqual(
    [...logged(running, "info").slice(-1), ...logged(running, "warn")].map(({ module, host, msg }) => ({
      module,
      host,
      msg,
    })),
    [
      { module: "itself", host: "one.example", msg: "sent 3 of many" },
      { module: "itself", host: "one.example", msg: "careful" },
    ],
  );
  assert.throws(() => log("loud" as never, "x"), /no log level loud/);
});

test("a status is logged, and shown with the module's state", async (t) => {
  const running = await hostOf(t, { worried: (module) => module.set_status("warn", "disk is nearly full") });
  assert.equal(stateOf(running, "worried")?.note, "disk is nearly full");
  assert.equal(logged(running, "warn")[0]?.module, "worried");
});

test("a module can read its folder and the files in it", async (t) => {
  const running = await pluginHost(t, {
    "mod_files/index.ts": "export default (module) => module;",
    "mod_files/page.html": "<p>",
  });
  const module = running.host.exports<Module>("files");
  assert.deepEqual(await module.load_resource("page.html"), await readFile(join(module.get_directory(), "page.html")));
  assert.deepEqual(
    module.modules().map(({ name }) => name),
    ["files"],
  );
});

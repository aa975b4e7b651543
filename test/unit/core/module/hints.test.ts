/** Hints in the log for authors of JavaScript, who lack the messages of the compiler. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Module } from "#core/types.ts";
import { hello, hostOf, logged, pluginHost, stateOf } from "./support.ts";

type Loads = (module: Module) => unknown;

/** Loads a module, and returns the warnings in the log. */
async function warnings(t: Parameters<typeof hostOf>[0], load: Loads, options?: object): Promise<string[]> {
  const host = await hostOf(t, { app: { name: "app", load, ...(options === undefined ? {} : { options }) } as never });
  return logged(host, "warn").map(({ msg }) => msg);
}

describe("a hint in the log", () => {
  const provides =
    (kind: string, item: object): Loads =>
    (module) => {
      module.depends("http");
      module.provides(kind, item as never);
    };
  const route = { GET: () => "x" };
  const cases: Record<string, readonly [load: Loads, said: RegExp]> = {
    "a kind that nobody takes": [provides("web", { route }), /provides "web", which no loaded module takes: .* http,/],
    "a kind that is misspelt": [provides("HTTP", { route }), /provides "HTTP".*did you mean "http"\?/],
    "http without the module": [
      (module) => module.provides("http", { route }),
      /provides "http", but the module http is not loaded: write module\.depends\("http"\)/,
    ],
    "a field of the provider": [
      provides("http", { route, streaming_upload: true }),
      /the provider has the field streaming_upload, .*did you mean streaming_uploads\?/,
    ],
    "a field of cors": [
      provides("http", { route, cors: { enable: true } }),
      /cors of the provider has the field enable, .*did you mean enabled\?/,
    ],
    "a route without handler": [
      provides("http", { route: { ...route, "GET /a": undefined } }),
      /the route "GET \/a" has no handler/,
    ],
    "an event of no name": [
      (module) => module.hook("http-eror", () => undefined),
      /hooks http-eror, .*did you mean http-error\?/,
    ],
    "a function of the life cycle": [
      (module) => Object.assign(module, { unlod: () => undefined }),
      /sets module\.unlod, .*did you mean module\.unload\?/,
    ],
  };
  for (const [what, [load, said]] of Object.entries(cases)) {
    test(`names ${what}`, async (t) => {
      const logged = await warnings(t, load);
      assert.equal(logged.length, 1, logged.join("\n"));
      assert.match(logged[0] ?? "", said);
    });
  }

  const options = { notes_limit: { type: "integer", default: 3, describe: "How many." } };

  test("names an option that is read by a name similar to a declared one, once", async (t) => {
    const logged = await warnings(
      t,
      (module) => [module.get_option("notes_limt"), module.get_option_integer("notes_limt", 5)],
      options,
    );
    assert.deepEqual(logged, ["reads the option notes_limt, which it does not declare: did you mean notes_limit?"]);
  });

  test("names an unknown field of an option's declaration", async (t) => {
    const logged = await warnings(t, () => undefined, { notes_limit: { ...options.notes_limit, defualt: 3 } });
    assert.deepEqual(logged, ["declares the option notes_limit with the field defualt: did you mean default?"]);
  });

  test("names an export that is similar to one that the host reads", async (t) => {
    const host = await pluginHost(t, {
      "mod_a.js": "export const option = {}; export const dependancies = []; export default () => {};",
    });
    assert.deepEqual(
      logged(host, "warn").map(({ msg }) => msg.replace(/, which.*:/, "")),
      ["exports dependancies did you mean depends?", "exports option did you mean options?"],
    );
  });

  test("does not appear for correct code, nor for a kind of its own that another module receives", async (t) => {
    const logged = await warnings(
      t,
      (module) => {
        hello(module);
        module.handle_items(
          "shelf-provider",
          () => undefined,
          () => undefined,
        );
        module.provides("shelf", { books: 3 });
        module.hook("shelf-full", () => undefined);
        Object.assign(module, { count: 3 });
        module.get_option("data_path");
        module.get_option_integer("notes_limit");
        module.get_option("something_of_others");
      },
      options,
    );
    assert.deepEqual(logged, []);
  });
});

describe("a module is not loaded if", () => {
  test("a field of its provider has a value of the wrong kind, or its routes have a misspelt name", async (t) => {
    const provider = (item: object) => (module: Module) => {
      module.depends("http");
      module.provides("http", item as never);
    };
    const host = await hostOf(t, {
      wrong: provider({ route: {}, cors: true, name: 5 }),
      near: provider({ routes: { GET: () => "x" } }),
    });
    assert.match(
      stateOf(host, "wrong")?.note ?? "",
      /App wrong: .*name must be text; cors must be an object: \{ enabled/,
    );
    assert.match(
      stateOf(host, "near")?.note ?? "",
      /App near: .*route is missing; .*field routes.*did you mean route\?/,
    );
  });

  test("it reads an option by a getter of another type, and the operator's value is not called wrong", async (t) => {
    const host = await hostOf(t, {
      app: {
        options: { app_order: { type: "string", default: "newest", describe: "Order." } },
        load: (module: Module) => module.get_option_number("app_order"),
      } as never,
    });
    assert.match(
      stateOf(host, "app")?.note ?? "",
      /app_order is declared with the type "string", and read as "number": read it with module\.get_option/,
    );
  });
});

/**
 * Handler results that are not a response: a 500 whose reason describes the value and what to
 * write.
 */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { createTestHost } from "#core/testing/index.ts";
import type { Handler, Module } from "#core/types.ts";

const wrong: Record<string, { readonly value: () => unknown; readonly said: RegExp }> = {
  object: { value: () => ({ hello: "world" }), said: /returned an object with hello, .*json\(value\).*"modhost"/ },
  many: { value: () => ({ a: 1, b: 2, c: 3, d: 4, e: 5, f: 6 }), said: /an object with a, b, c, d, e, \.\.\./ },
  empty: { value: () => ({}), said: /an empty object/ },
  array: { value: () => [1, 2], said: /an array.*json\(value\)/ },
  bigint: { value: () => 10n, said: /a bigint.*String\(value\)/ },
  function: { value: () => () => "x", said: /a function.*call it/ },
  symbol: { value: () => Symbol("x"), said: /a symbol/ },
  map: { value: () => new Map([["a", 1]]), said: /an empty Map/ },
  date: { value: () => new Date(0), said: /an empty Date/ },
  fetched: { value: () => new Response("x"), said: /a Response of fetch.*status_code: r\.status/ },
  blob: { value: () => new Blob(["x"]), said: /a Blob.*blob\.stream\(\)/ },
  status: { value: () => ({ status: 404 }), said: /an object whose status is 404.*write status_code/ },
  status_code: { value: () => ({ status_code: "404", body: "x" }), said: /whose status_code is a string/ },
  headers: { value: () => ({ headers: new Headers(), body: "x" }), said: /whose headers is a Headers.*fromEntries/ },
  body: { value: () => ({ body: { a: 1 } }), said: /whose body is an object.*json\(value\)/ },
  sent: { value: () => 0, said: /A response body cannot be an array: .*JSON\.stringify/ },
};

const load = (route: Record<string, Handler>) => (module: Module) => {
  module.depends("http");
  module.provides("http", { route });
};

describe("a handler result that is not a response", () => {
  for (const [name, { value, said }] of Object.entries(wrong)) {
    test(`gets a 500 with the reason in the log, and not for the client: ${name}`, async () => {
      const route: Record<string, Handler> = {
        "GET /now": name === "sent" ? (event) => event.response.send([] as never) : () => value() as never,
        "GET /later": name === "sent" ? (event) => event.response.send([] as never) : async () => value() as never,
        "GET /*": () => "not asked",
      };
      await using host = await createTestHost({ listen: false, modules: [{ name: "app", load: load(route) }] });
      for (const path of ["/app/now", "/app/later"]) {
        const { status, body } = await host.inject(path);
        assert.equal(status, 500, path);
        assert.doesNotMatch(body, /returned|cannot be/);
      }
      const [first, second] = host.logged("error").map(({ msg }) => msg);
      assert.match(first ?? "", said);
      assert.match(second ?? "", said);
      if (name !== "sent") assert.match(first ?? "", /GET \/app\/now returned/);
    });
  }

  test("is a response if it only has an unknown field, and a warning names the right field", async () => {
    const route = { "GET /": () => ({ statusCode: 201, body: "" }) as never };
    await using host = await createTestHost({ listen: false, modules: [{ name: "app", load: load(route) }] });
    for (const _ of [1, 2]) assert.equal((await host.inject("/app/")).status, 200);
    assert.deepEqual(
      host.logged("warn").map(({ msg }) => msg),
      ["GET /app/ returned an object with statusCode, which no response has: write status_code"],
    );
  });

  test("in the route table keeps the module from loading, by name", async () => {
    const route = { "GET /a": [1], "GET /b": 5n, "GET /c": { hello: 1 }, "GET /d": "right" } as never;
    const modules = [{ name: "app", load: load(route) }];
    await assert.rejects(createTestHost({ listen: false, modules }), (error: Error) => {
      assert.match(error.message, /the route "GET \/a" is an array: write a function/);
      assert.match(error.message, /the route "GET \/b" is a bigint/);
      assert.match(error.message, /the route "GET \/c" is an object with hello/);
      assert.doesNotMatch(error.message, /GET \/d/);
      return true;
    });
  });
});

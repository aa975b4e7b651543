/**
 * Responses without a content type: the warnings in the log, and the headers that an operator or an
 * app adds.
 */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { createTestHost } from "#core/testing/index.ts";
import type { DefaultHeaders, Module, RouteTable } from "#core/types.ts";

const untyped: RouteTable = {
  "GET /say/*": (_event, words) => words,
  "GET /constant": "constant",
  "GET /bytes": () => Buffer.from("<p>"),
  "GET /sent": (event) => event.response.send("sent"),
};
const typed: RouteTable = {
  "GET /typed": (event) => {
    event.response.headers["Content-Type"] = "text/css";
    return "a {}";
  },
  "GET /empty": () => "",
  "GET /status": () => 201,
  "GET /no-content": () => ({ status_code: 204, body: "ignored" }),
  "GET /page": () => 404,
};

function app(name: string, default_headers?: DefaultHeaders) {
  return {
    name,
    load(module: Module) {
      module.depends("http");
      const route = { ...untyped, ...typed };
      module.provides("http", { route, ...(default_headers === undefined ? {} : { default_headers }) });
    },
  };
}

const hostOf = (config: Record<string, unknown> = {}, ...apps: ReturnType<typeof app>[]) =>
  createTestHost({ listen: false, config, modules: [app("plain"), ...apps] });

describe("a response without a content type", () => {
  test("causes a warning that names the route and the remedy, once for each route", async () => {
    await using host = await hostOf();
    for (const path of ["say/a", "say/b", "constant", "bytes", "sent", "sent"]) {
      const { status, headers } = await host.inject(`/plain/${path}`);
      assert.deepEqual([status, headers["content-type"]], [200, undefined]);
    }
    const reported = host.logged("warn");
    assert.deepEqual(
      reported.map(({ module, msg }) => [module, msg.split(" responds")[0]]),
      ["say/*", "constant", "bytes", "sent"].map((path) => ["plain", `GET /plain/${path}`]),
    );
    assert.match(reported[0]?.msg ?? "", /text\(\.\.\.\).*content_type = "text\/plain; charset=utf-8"/);
  });

  test("causes no warning when there is a type, or no body", async () => {
    await using host = await hostOf();
    for (const path of ["typed", "empty", "status", "no-content", "page"]) await host.inject(`/plain/${path}`);
    assert.deepEqual(host.logged("warn"), []);
  });
});

describe("http_default_headers", () => {
  const config = {
    http_default_headers: {
      content_type: "text/plain; charset=utf-8",
      "X-Content-Type-Options": "nosniff",
      bare: { content_type: "", x_content_type_options: "" },
      configured: { content_type: "text/html; charset=utf-8" },
    },
  };

  test("are added to responses that lack them, with a content type only for a body", async () => {
    await using host = await hostOf(config);
    const ask = async (path: string) => {
      const { headers } = await host.inject(`/plain/${path}`);
      return [headers["content-type"], headers["x-content-type-options"]];
    };
    for (const path of ["say/a", "constant", "bytes", "sent"])
      assert.deepEqual(await ask(path), ["text/plain; charset=utf-8", "nosniff"], path);
    assert.deepEqual(await ask("typed"), ["text/css", "nosniff"]);
    for (const path of ["empty", "status", "no-content"])
      assert.deepEqual(await ask(path), [undefined, "nosniff"], path);
    assert.match(`${await ask("page")}`, /^text\/.*,nosniff$/);
    assert.equal((await host.inject("/nowhere")).headers["x-content-type-options"], "nosniff");
    assert.deepEqual(host.logged("warn"), []);
  });

  test("are overridden by the app's own, and these by those that the option has for the app", async () => {
    const own = { content_type: "text/csv" };
    await using host = await hostOf(config, app("own", own), app("configured", own), app("bare"));
    const typeOf = async (name: string) => (await host.inject(`/${name}/constant`)).headers["content-type"];
    assert.equal(await typeOf("own"), "text/csv");
    assert.equal(await typeOf("configured"), "text/html; charset=utf-8");
    assert.equal(await typeOf("bare"), undefined);
    assert.equal((await host.inject("/bare/typed")).headers["x-content-type-options"], undefined);
  });

  test("keep the types that middleware sets, and are added to its responses", async () => {
    const koa = {
      name: "koa",
      load(module: Module) {
        module.depends("http");
        module.provides("http", {
          middleware: (context) => {
            if (context.path === "/json") context.body = { a: 1 };
            else context.res.end("raw");
          },
        });
      },
    };
    await using host = await createTestHost({ listen: false, config, modules: [koa] });
    const { headers, body } = await host.inject("/koa/json");
    assert.deepEqual(
      [body, headers["content-type"], headers["x-content-type-options"]],
      ['{"a":1}', "application/json; charset=utf-8", "nosniff"],
    );
    assert.equal((await host.inject("/koa/raw")).headers["x-content-type-options"], "nosniff");
  });

  test("are added to responses that pass through middleware before the apps", async () => {
    const before = {
      name: "before",
      load(module: Module) {
        module.provides("http-middleware", { middleware: (_context, next) => next() });
      },
    };
    await using host = await createTestHost({ listen: false, config, modules: [app("plain"), before] });
    const { headers, body } = await host.inject("/plain/constant");
    assert.deepEqual(
      [body, headers["content-type"], headers["x-content-type-options"]],
      ["constant", "text/plain; charset=utf-8", "nosniff"],
    );
  });

  for (const [wrong, said] of [
    [{ x_powered_by: "me" }, /http_default_headers\.x_powered_by is "me", but only content_type and/],
    [{ content_type: 5 }, /http_default_headers\.content_type is 5, but it must be text of one line/],
    [{ content_type: "a\r\nb: c" }, /it must be text of one line/],
    [{ shop: { set_cookie: "a=b" } }, /http_default_headers\.shop\.set_cookie/],
  ] as const) {
    test(`stop the start when they are wrong: ${JSON.stringify(wrong)}`, async () => {
      await assert.rejects(
        createTestHost({ config: { modules_enabled: ["http"], http_default_headers: wrong } }),
        said,
      );
    });
  }
});

import assert from "node:assert/strict";
import { describe, type TestContext, test } from "node:test";
import type { InlineModule } from "#core/index.ts";
import type { Module, RouteTable } from "#core/types.ts";
import { freePort } from "#test/support/free_port.ts";
import { type AdminHost, adminHost } from "./support.ts";

const title = /<h1>modhost is running<\/h1>/;

function app(name: string, route: RouteTable, default_path?: string): InlineModule {
  return {
    name: `mod_${name}`,
    load(module: Module) {
      module.depends("http");
      module.provides("http", { route, ...(default_path === undefined ? {} : { default_path }) });
    },
  };
}

async function serving(t: TestContext, modules: readonly InlineModule[] = [], config: Record<string, unknown> = {}) {
  const enabled = ["http_admin", "http_errors"];
  const defaults = { modules_enabled: enabled, admin_local: "any_user" };
  return adminHost(t, { allow_failed: true, config: { ...defaults, ...config }, modules });
}

async function open({ inject }: AdminHost, { path = "/", method = "GET", ...more }: Record<string, string> = {}) {
  const response = await inject({ path, method, headers: { accept: "text/html,*/*", ...more } });
  return { ...response, text: response.body };
}

describe("the start page", () => {
  test("shows the operator the served apps, the failures, and what to try next", async (t) => {
    const broken: InlineModule = {
      name: "mod_broken",
      load() {
        throw new Error("no <b>luck</b>");
      },
    };
    const admin_port = await freePort();
    const apps = [app("shop", { "GET /": "shop" }), app("sink", { "POST /drop": "" }), broken];
    const running = await serving(t, apps, { admin_port, admin_interfaces: ["127.0.0.1"] });
    const { status, headers, text } = await open(running);
    assert.equal(status, 200, "the page is sent to the operator's browser");
    assert.match(text, title);
    assert.match(text, new RegExp(`<a href="http://localhost:${admin_port}/admin/">Open the dashboard</a>`));
    assert.doesNotMatch(text, /page-key/);
    assert.match(text, /<a href="\/shop\/">\/shop\/<\/a><span>shop<\/span>/);
    assert.match(text, /<span>\/sink\/drop<\/span><span>sink<\/span>/);
    assert.match(text, /The module broken is not loaded: .*no &#60;b&#62;luck&#60;\/b&#62;/);
    assert.match(text, /<code>modhost reload broken<\/code>/);
    assert.doesNotMatch(text, /<script/);
    assert.equal(headers["cache-control"], "no-store");
    assert.match(String(headers["content-security-policy"]), /^default-src 'none'; style-src 'sha256-/);
    const head = await open(running, { method: "HEAD" });
    assert.deepEqual([head.status, head.text], [200, ""]);
  });

  test("is not shown to others, who get the usual 404", async (t) => {
    const running = await serving(t, [app("shop", { "GET /": "shop" })]);
    const strangers: [string, Record<string, string>][] = [
      ["a proxy", { "x-forwarded-for": "203.0.113.7" }],
      ["the name of another machine", { host: "www.example.org" }],
      ["a script of an app", { "sec-fetch-site": "same-origin", "sec-fetch-mode": "cors", "sec-fetch-dest": "empty" }],
      ["a frame", { "sec-fetch-site": "same-origin", "sec-fetch-mode": "navigate", "sec-fetch-dest": "iframe" }],
      ["a program", { accept: "application/json" }],
      ["a client that accepts any type", { accept: "*/*" }],
      ["another path", { path: "/nowhere" }],
      ["another method", { method: "POST" }],
    ];
    for (const [who, request] of strangers) {
      const { status, text } = await open(running, request);
      assert.equal(status, 404, who);
      assert.doesNotMatch(text, /modhost is running|shop/, who);
      assert.match(text, /404/, who);
    }
    const closed = await serving(t, [], { admin_local: "none" });
    assert.doesNotMatch((await open(closed)).text, title);
    const off = await serving(t, [], { admin_start_page: false });
    assert.doesNotMatch((await open(off)).text, title);
  });

  for (const [what, module, wanted] of [
    ["an app at /", app("mine", { GET: "mine" }, "/"), /^mine$/],
    ["a wildcard", app("mine", { "GET /*": (_event, rest) => `rest ${rest}` }, "/"), /^rest $/],
    ["an app that responds with 404 there", app("mine", { "GET /*": 404 }, "/"), /404<\/b>Not Found/],
    ["an app that calls next", app("mine", { "GET /*": () => undefined }, "/"), /404<\/b>Not Found/],
    ["an app for other methods", app("mine", { "POST /": "posted" }, "/"), /405<\/b>Method Not Allowed/],
    [
      "the operator's own page for 404",
      {
        name: "mod_mine",
        load: (module: Module) => module.hook("http-error", () => "my own page"),
      },
      /^my own page$/,
    ],
  ] as const) {
    test(`hides nothing: ${what} takes precedence`, async (t) => {
      const { text } = await open(await serving(t, [module]));
      assert.match(text, wanted);
      assert.doesNotMatch(text, title);
    });
  }

  test("appears again when the app that was mounted at the root is unloaded", async (t) => {
    const running = await serving(t, [app("late", { "GET /": "late" }, "/")]);
    assert.match((await open(running)).text, /^late$/);
    await running.host.unload("late");
    assert.match((await open(running)).text, title);
  });
});

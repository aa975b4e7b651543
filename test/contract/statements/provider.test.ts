/** Parts 1 and 2 of the specification: the service, the provider, its name and its route keys. */
import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, test } from "node:test";
import type { Handler, HttpEvent, Module } from "#core/types.ts";
import { startHost, withHost } from "#test/support/host.ts";
import { overEach } from "#test/support/transports.ts";

const serving = (text: string) => (module: Module) => {
  module.depends("http");
  module.provides("http", { route: { GET: () => text } });
};

const host = withHost({
  placed: ["other-name", "mod_http_literal", "first", "second"],
  modules: {
    mod_plain: serving("plain"),
    mod_http_prefixed: serving("prefixed"),
    mod_http_http_double: serving("double"),
    unprefixed: serving("unprefixed"),
    mod_http_renamed(module) {
      module.depends("http");
      module.provides("http", { name: "other-name", route: { GET: () => "renamed" } });
    },
    mod_http_mod_named(module) {
      module.depends("http");
      module.provides("http", { name: "mod_http_literal", route: { GET: () => "literal" } });
    },
    mod_http_two(module) {
      module.depends("http");
      module.provides("http", { name: "first", route: { GET: () => "one" } });
      module.provides("http", { name: "second", route: { GET: () => "two" } });
    },
    mod_http_routeless(module) {
      module.depends("http");
      module.provides("http", {} as never);
    },
    mod_http_keys(module) {
      module.depends("http");
      module.provides("http", {
        route: {
          GET: () => "base",
          POST: ({ request }: HttpEvent) => `posted ${request.body}`,
          "GET /relative/path": () => "relative",
          "GET /deep/*": (_event, path) => `below ${path}`,
          "get /lower": () => "lower",
          "GET    /spaced": () => "spaced",
          "GET /a b": () => "blank",
          "GET /mid/*/end": () => "literal star",
          "GET /pre*": () => "literal prefix",
          "GET /Case": () => "upper",
          "GET /br(ack)[et]{s}.+:p": () => "literal pattern",
        } as Record<string, Handler>,
      });
    },
    mod_http_methods(module) {
      module.depends("http");
      const methods = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND", "REPORT"];
      const handler = ({ request }: HttpEvent) => `did ${request.method}`;
      module.provides("http", { route: Object.fromEntries(methods.map((method) => [`${method} /any`, handler])) });
    },
  },
});

test("C1.1 the server is provided by the module mod_http", async () => {
  await using without = await startHost({ config: { modules_enabled: [] }, modules: { mod_idle() {} } });
  assert.deepEqual(without.host.listening(), []);
  const state = host()
    .host.modules()
    .find(({ name }) => name === "http");
  assert.equal(state?.status, "loaded");
  assert.deepEqual(
    host()
      .host.listening()
      .map(({ service }) => service)
      .sort(),
    ["http", "https"],
  );
});

test("C1.2 net.http offers utility functions", async () => {
  const net: Record<string, unknown> = await import("modhost/net/http");
  for (const name of ["formdecode", "formencode", "urlencode", "urldecode"])
    assert.equal(typeof net[name], "function", name);
});

overEach(host, "C1.3 an application is reachable under its app name", async (client) => {
  assert.equal(await client.text("/plain"), "plain");
  assert.equal(await client.text("/first"), "one");
  assert.equal(await client.text("/second"), "two");
  assert.equal(await client.status("/nobody"), 404);
});

test("C1.4 plain HTTP is served on port 5280 and HTTPS on port 5281 unless configured", async () => {
  await using quiet = await startHost({ config: { http_ports: undefined, https_ports: undefined }, listen: false });
  assert.deepEqual(quiet.host.config.value("http_ports"), [5280]);
  assert.deepEqual(quiet.host.config.value("https_ports"), [5281]);
});

overEach(host, "C1.5 plain HTTP and HTTPS serve the same application paths", async (client) => {
  for (const [path, text] of Object.entries({
    "/plain": "plain",
    "/prefixed": "prefixed",
    "/keys/deep/x": "below x",
  })) {
    assert.equal(await client.text(path), text);
  }
});

overEach(host, "C1.6 the app name is the module name without the prefix mod_", async (client) => {
  assert.equal(await client.text("/plain"), "plain");
  assert.equal(await client.status("/mod_plain"), 404);
  assert.equal(await client.text("/unprefixed"), "unprefixed");
});

overEach(host, "C1.7 the app name is the module name without the prefix mod_http_, taken once", async (client) => {
  assert.equal(await client.text("/prefixed"), "prefixed");
  for (const path of ["/http_prefixed", "/mod_http_prefixed"]) assert.equal(await client.status(path), 404);
  assert.equal(await client.text("/http_double"), "double");
  assert.equal(await client.status("/double"), 404);
});

overEach(host, "C1.8 a name in the provider overrides the app name, as it is", async (client) => {
  assert.equal(await client.text("/other-name"), "renamed");
  assert.equal(await client.status("/renamed"), 404);
  assert.equal(await client.text("/mod_http_literal"), "literal");
});

describe("modules in files", () => {
  const files = withHost({
    async prepare(folder) {
      await mkdir(join(folder, "plugins"));
      const source = (types: string) =>
        `export default function (module${types}) {
          module.depends("http");
          module.provides("http", { route: { GET: () => "from a file" } });
        }\n`;
      await writeFile(join(folder, "plugins", "mod_typed.ts"), source(': import("modhost/types").Module'));
      await writeFile(join(folder, "plugins", "mod_untyped.js"), source(""));
    },
    config: (folder) => ({ plugin_paths: [join(folder, "plugins")], modules_enabled: ["typed", "untyped"] }),
  });

  overEach(files, "C1.9 a module is a file in the server's language", async (client) => {
    for (const app of ["/typed", "/untyped"]) assert.equal(await client.text(app), "from a file");
  });
});

overEach(host, "C2.1 module.provides declares an HTTP provider", async (client) => {
  assert.equal(await client.text("/keys"), "base");
});

overEach(host, "C2.2 a provider must have routes", async (client) => {
  assert.equal(await client.status("/routeless"), 404);
  assert.match(host().log(), /routeless/);
  assert.equal(await client.text("/plain"), "plain");
});

overEach(host, "C2.3 the name of a provider may be left out", async (client) => {
  assert.equal(await client.text("/keys"), "base");
});

describe("with a single module", () => {
  const fresh = withHost({
    config: { modules_enabled: [] },
    modules: { mod_http_alone: serving("alone") },
  });

  overEach(fresh, "C2.4 module.depends loads mod_http", async (client, { host }) => {
    assert.equal(await client.text("/alone"), "alone");
    const states = host.modules().map(({ name, status }) => `${name} ${status}`);
    assert.deepEqual(states.sort(), ["http loaded", "http_alone loaded"]);
  });
});

overEach(host, "C2.23 the key METHOD serves the app base path for that method", async (client) => {
  assert.equal(await client.text("/keys"), "base");
  assert.equal(await client.text({ method: "POST", path: "/keys", body: "x" }), "posted x");
  assert.equal(await client.status("/keys/"), 404);
  assert.equal(await client.status("/keys/x"), 404);
});

overEach(host, "C2.24 the key METHOD /relative/path serves a path relative to the app base path", async (client) => {
  assert.equal(await client.text("/keys/relative/path"), "relative");
  for (const path of ["/relative/path", "/keys/relative", "/keys/relative/path/x", "/keys/relative/path/"]) {
    assert.equal(await client.status(path), 404, path);
  }
});

overEach(host, "C2.25 the key METHOD /relative/path/* serves the path and everything below it", async (client) => {
  assert.equal(await client.text("/keys/deep"), "below ");
  assert.equal(await client.text("/keys/deep/"), "below ");
  assert.equal(await client.text("/keys/deep/x"), "below x");
  assert.equal(await client.text("/keys/deep/x/y/"), "below x/y/");
  assert.equal(await client.status("/keys/deeper"), 404);
});

overEach(host, "C4.1 a route key may name any HTTP method", async (client) => {
  for (const method of ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND", "REPORT"]) {
    assert.equal(await client.text({ method, path: "/methods/any" }), `did ${method}`);
  }
});

overEach(host, "D1 the method of a key may be in lower case and any blanks may follow it", async (client) => {
  assert.equal(await client.text("/keys/lower"), "lower");
  assert.equal(await client.text("/keys/spaced"), "spaced");
});

overEach(host, "D2 a key is matched letter by letter against the decoded path", async (client) => {
  assert.equal(await client.text("/keys/a%20b"), "blank");
  assert.equal(await client.text("/keys/mid/*/end"), "literal star");
  assert.equal(await client.status("/keys/mid/x/end"), 404);
  assert.equal(await client.text("/keys/pre*"), "literal prefix");
  assert.equal(await client.status("/keys/prefix"), 404);
  assert.equal(await client.text("/keys/Case"), "upper");
  assert.equal(await client.status("/keys/case"), 404);
  assert.equal(await client.text("/keys/br(ack)%5Bet%5D%7Bs%7D.+:p"), "literal pattern");
  assert.equal(await client.status("/keys/brack"), 404);
});

describe("with invalid route keys", () => {
  const wrong = withHost({
    modules: {
      mod_http_wrong(module) {
        module.depends("http");
        module.provides("http", {
          route: { "BREW /pot": () => "tea", "/nomethod": () => "x", "GET /good": () => "good" } as Record<
            string,
            Handler
          >,
        });
      },
    },
  });

  overEach(wrong, "D3 a key with an unknown method, or without one, is refused at load by name", async (client) => {
    for (const named of [/BREW/, /wrong/, /\/nomethod/]) assert.match(wrong().log(), named);
    for (const path of ["/wrong/nomethod", "/wrong/pot", "/wrong/good"])
      assert.equal(await client.status(path), 404, path);
  });
});

test("D4 overriding the app name is warned about", () => {
  assert.match(host().log(), /other-name/);
});

/** Part 7 of the specification, and the decisions on errors and limits. */
import assert from "node:assert/strict";
import { STATUS_CODES } from "node:http";
import { describe, test } from "node:test";
import type { HttpErrorEvent, Module } from "#core/types.ts";
import { withHost } from "#test/support/host.ts";
import { rawExchange } from "#test/support/raw.ts";
import { overEach } from "#test/support/transports.ts";

const codes = Object.keys(STATUS_CODES)
  .map(Number)
  .filter((code) => code >= 400);

const failing = (module: Module) => {
  module.depends("http");
  module.provides("http", {
    route: {
      "GET /code/*": (_event, path) => Number(path),
      "GET /throw"() {
        throw new Error("a detail for developers");
      },
    },
  });
};

const host = withHost({ modules: { mod_http_err: failing } });

overEach(host, "C7.1 every status of 400 or more has its error page", async (client) => {
  for (const code of codes) {
    const reply = await client.request(`/err/code/${code}`);
    assert.equal(reply.status, code);
    assert.equal(reply.header("content-type"), "text/html; charset=utf-8");
    assert.match(reply.text, new RegExp(`${code}`));
    assert.equal(reply.header("content-length"), `${reply.bytes.length}`);
  }
});

overEach(host, "D54 the error page of a HEAD request has its headers and no body", async (client) => {
  const reply = await client.request({ method: "HEAD", path: "/err/code/404" });
  assert.deepEqual([reply.status, reply.text], [404, ""]);
  assert.match(reply.header("content-type") ?? "", /^text\/html/);
});

test("D55 a malformed request is a 400 with a page, and the connection is closed", async () => {
  for (const [port, tls] of [
    [host().http, false],
    [host().https, true],
  ] as const) {
    for (const head of [
      "NONSENSE\r\n\r\n",
      "GET /err HTTP/1.1\r\nHost: x\r\nno colon\r\n\r\n",
      "GET /\x01 HTTP/1.1\r\nHost: x\r\n\r\n",
    ]) {
      const response = await rawExchange(port, head, { tls });
      assert.match(response, /^HTTP\/1\.1 400 .*\r\n\r\n.*400/s, JSON.stringify(head));
    }
  }
});

overEach(host, "D56 a request head over http_max_header_size is refused, by a 431 in HTTP/1.1", async (client) => {
  const headers = { "x-large": "x".repeat(20_000) };
  assert.equal(await client.status({ path: "/err/code/404", headers: { "x-large": "x".repeat(12_000) } }), 404);
  if (client.http2) await assert.rejects(client.request({ path: "/err/code/404", headers }), /closed with code 11 /);
  else assert.equal(await client.status({ path: "/err/code/404", headers }), 431);
  assert.equal(await client.status("/err/code/404"), 404);
});

describe("with a module that replaces the error page", () => {
  const events: HttpErrorEvent[] = [];
  const replaced = withHost({
    inMain: ["mod_http_own_page"],
    modules: {
      mod_http_err: failing,
      mod_http_own_page(module: Module) {
        module.hook("http-error", (event: HttpErrorEvent) => {
          events.push(event);
          if (event.code === 404 || event.code === 500) {
            event.response.headers.content_type = "application/json";
            return JSON.stringify({ own: event.code });
          }
          return undefined;
        });
      },
    },
  });

  overEach(replaced, "D57 a hook of http-error replaces the page of a code", async (client) => {
    const own = await client.request("/nobody");
    assert.deepEqual([own.status, own.text, own.header("content-type")], [404, '{"own":404}', "application/json"]);
    assert.equal((await client.request("/err/throw")).text, '{"own":500}');
    assert.match(String((events.at(-1) as HttpErrorEvent).error), /a detail for developers/);
    assert.equal(events.at(-1)?.message, undefined);
    assert.match((await client.request("/err/code/418")).header("content-type") ?? "", /^text\/html/);
  });
});

describe("with detailed error pages", () => {
  const detailed = withHost({ config: { http_errors_detailed: true }, modules: { mod_http_err: failing } });

  overEach(detailed, "D58 the cause is shown only with http_errors_detailed", async (client) => {
    assert.match((await client.request("/err/throw")).text, /a detail for developers/);
    assert.doesNotMatch((await host().client(client.name).request("/err/throw")).text, /a detail for developers/);
  });
});

/**
 * Header values beyond ASCII: one byte for each character, whatever carries the response and
 * whatever its body is.
 */
import assert from "node:assert/strict";
import { Readable } from "node:stream";
import { describe, test } from "node:test";
import type { HttpEvent, RouteTable } from "#core/types.ts";
import { serving, withHost } from "#test/support/host.ts";
import { rawExchange } from "#test/support/raw.ts";
import { overEach } from "#test/support/transports.ts";

const given = { x_test: "caf\u00e9", location: "/caf\u00c3\u00a9" };
const head = { status_code: 302, status: "302 F\u00f6und", headers: given };

const route: RouteTable = {
  "GET /text": () => ({ ...head, body: "text" }),
  "GET /beyond": () => ({ ...head, body: "t\u00e9xt \u{1f600}" }),
  "GET /bytes": () => ({ ...head, body: Buffer.from("bytes") }),
  "GET /empty": () => ({ ...head, body: "" }),
  "GET /nothing": () => ({ ...head }),
  "GET /stream": () => ({ ...head, body: Readable.from(["a", "b"]) }),
  "GET /late": ({ response }: HttpEvent) => {
    Object.assign(response.headers, given);
    response.status_code = 302;
    return (async function* () {
      yield "t\u00e9xt";
    })();
  },
  "GET /trailed": () => ({ ...head, body: "trailed", trailers: { x_sum: "caf\u00e9" } }),
  "GET /status": ({ response }: HttpEvent) => {
    response.headers.x_test = given.x_test;
    response.headers.location = given.location;
    return 302;
  },
  "GET /page": ({ response }: HttpEvent) => {
    Object.assign(response.headers, given);
    return 404;
  },
};

const apart = `
export const isolated = true;
export const depends = ["http"];
const head = { status_code: 302, status: "302 F\u00f6und", headers: { x_test: "caf\u00e9", location: "/caf\u00c3\u00a9" } };
export default (module) => module.provides("http", { route: {
  "GET /text": () => ({ ...head, body: "text" }),
  "GET /nothing": () => head,
  "GET /stream": () => ({ ...head, body: (async function* () { yield "text"; })() }),
  "POST /told": ({ request }) => ({ headers: { x_told: request.header("x-name") } }),
} });
`;

const host = withHost({
  config: { plugin_autoload: true },
  plugins: { mod_apart: apart },
  modules: {
    mod_routed: serving({ route }),
    mod_classic: serving({
      middleware: ({ res }: { res: import("node:http").ServerResponse }, next: () => unknown) => {
        if (res.req.url === "/koa") return next();
        if (res.req.url === "/broken") res.setHeader("X-Test", "a\u010d\u010ab");
        if (res.req.url === "/split") res.writeHead(200, { "x-test": ["a", "b\u0100c"] });
        res.setHeader("X-Test", given.x_test);
        res.setHeader("Location", given.location);
        if (res.req.url === "/flushed") res.flushHeaders();
        if (res.req.url === "/pieces") res.write("t\u00e9xt");
        res.end(res.req.url === "/beyond" ? "t\u00e9xt" : "text");
      },
    }),
  },
});

describe("a header value beyond ASCII", () => {
  overEach(host, "has one byte for each character with every kind of body, in GET and in HEAD", async (client) => {
    for (const path of ["text", "beyond", "bytes", "empty", "nothing", "stream", "late", "trailed", "status", "page"])
      for (const method of ["GET", "HEAD"]) {
        const reply = await client.request({ method, path: `/routed/${path}` });
        const { header } = reply;
        assert.deepEqual(
          [header("x-test"), header("location")],
          ["caf\u00e9", "/caf\u00c3\u00a9"],
          `${method} ${path}`,
        );
        if (path === "beyond" && method === "GET") assert.equal(reply.text, "t\u00e9xt \u{1f600}");
        if (path === "trailed" && method === "GET") assert.equal(reply.trailers["x-sum"], "caf\u00e9");
      }
  });

  overEach(host, "has them in responses of an isolated module, which gets those of requests", async (client) => {
    for (const path of ["text", "nothing", "stream"]) {
      const { header } = await client.request(`/apart/${path}`);
      assert.deepEqual([header("x-test"), header("location")], ["caf\u00e9", "/caf\u00c3\u00a9"], path);
    }
    const reported = await client.request({
      method: "POST",
      path: "/apart/told",
      headers: { "x-name": "caf\u00c3\u00a9" },
      body: Readable.from(["a", "b"]),
    });
    assert.equal(reported.header("x-told"), "caf\u00c3\u00a9");
  });

  overEach(host, "has them where middleware answers on Node's own response", async (client) => {
    for (const path of ["text", "beyond", "flushed", "pieces"]) {
      const { header } = await client.request(`/classic/${path}`);
      assert.deepEqual([header("x-test"), header("location")], ["caf\u00e9", "/caf\u00c3\u00a9"], path);
    }
  });

  overEach(host, "is refused where a byte has no room for a character, also on Node's own response", async (client) => {
    for (const path of ["broken", "split"]) {
      const { status, header } = await client.request(`/classic/${path}`);
      assert.deepEqual([status, header("x-test")], [500, undefined], path);
    }
  });

  test("is sent as the same bytes in a reason phrase", async () => {
    for (const path of ["text", "empty", "stream"]) {
      const received = await rawExchange(
        host().http,
        `GET /routed/${path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`,
      );
      assert.match(received, /^HTTP\/1\.1 302 F\u00f6und\r\n/, path);
    }
  });
});

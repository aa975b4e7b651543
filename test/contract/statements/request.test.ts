/** Part 2 of the specification: the event and its request. */
import assert from "node:assert/strict";
import { describe } from "node:test";
import { type Form, formdecode } from "#core/net/http.ts";
import type { HttpEvent, Module } from "#core/types.ts";
import { withHost } from "#test/support/host.ts";
import { overEach } from "#test/support/transports.ts";

const host = withHost({
  modules: {
    mod_http_req(module: Module) {
      module.depends("http");
      const echo = ({ request }: HttpEvent, argument?: string) =>
        JSON.stringify({
          method: request.method,
          path: request.path,
          url: { path: request.url.path, raw: request.url.raw_path, query: request.url.query ?? null },
          body: request.body,
          bytes: request.body_bytes.toString("hex"),
          headers: request.headers,
          secure: request.secure,
          ip: request.ip,
          id: request.id,
          argument: argument ?? null,
        });
      module.provides("http", {
        route: {
          "GET /echo": echo,
          "HEAD /echo": echo,
          "POST /echo": echo,
          "PUT /echo": echo,
          "PATCH /echo": echo,
          "DELETE /echo": echo,
          "GET /deep/*": echo,
          "GET /q": () => "a question mark is part of the query",
          "GET /q?x=1": () => "never",
          "GET /event": ({ request, response }) =>
            `${request.path} ${response.status_code} ${response.request === request}`,
          "POST /form"({ request }) {
            if (request.headers.content_type !== "application/x-www-form-urlencoded") return 415;
            const form = formdecode(request.body) as Form;
            return JSON.stringify({ last: { ...form }, all: [...form] });
          },
          "POST /json": ({ request }) =>
            request.headers.content_type?.includes("json") ? JSON.parse(request.body).a : 415,
          "GET /conn"({ request: { conn } }) {
            return JSON.stringify({
              ip: conn.ip(),
              clientport: conn.clientport(),
              serverport: conn.serverport(),
              ssl: conn.ssl(),
              remote: conn.socket.remotePort,
            });
          },
          "GET /close"({ request }) {
            request.conn.close();
            return true;
          },
          async "POST /stream"({ request }) {
            let bytes = 0;
            for await (const piece of request.body_stream) bytes += piece.length;
            return `${bytes}`;
          },
        },
      });
    },
    mod_http_up(module: Module) {
      module.depends("http");
      module.provides("http", {
        streaming_uploads: true,
        route: {
          async "POST /count"({ request }) {
            let bytes = 0;
            for await (const piece of request.body_stream) bytes += piece.length;
            return `${bytes} ${JSON.stringify(request.body)}`;
          },
          async "POST /early"({ request, response }) {
            for await (const piece of request.body_stream) return response.send(`first piece: ${piece}`);
            return "nothing came";
          },
        },
      });
    },
  },
  config: { http_max_content_size: 100_000 },
});

overEach(host, "C2.5 the first argument of a handler has the request and the response", async (client) => {
  assert.equal(await client.text("/req/event"), "/req/event 200 true");
});

overEach(host, "C2.6 names of request headers are lower-case with underscores", async (client) => {
  const headers = { "X-Some-Thing": "a", x_under_score: "b", "x-MIXED": "c" };
  const { headers: received } = await client.json({ path: "/req/echo", headers });
  const table = received as Record<string, string>;
  assert.equal(table.x_some_thing, "a");
  assert.equal(table.x_under_score, "b");
  assert.equal(table.x_mixed, "c");
  for (const name of Object.keys(table)) assert.match(name, /^[a-z0-9_]+$/);
});

overEach(host, "C2.7 the headers hold content_length, content_type and host", async (client) => {
  const call = {
    method: "POST",
    path: "/req/echo",
    body: "12345",
    headers: { "content-type": "text/x-test", host: "example.org:81" },
  };
  const table = (await client.json(call)).headers as Record<string, string>;
  assert.equal(table.content_length, "5");
  assert.equal(table.content_type, "text/x-test");
  assert.equal(table.host, "example.org:81");
});

overEach(host, "C2.8 the path is the full path with the app base path", async (client) => {
  assert.equal((await client.json("/req/deep/a/b?x=1")).path, "/req/deep/a/b");
});

overEach(host, "C2.9 url.path is the same as the path", async (client) => {
  const { path, url } = await client.json("/req/deep/a%20b//c");
  assert.equal((url as Record<string, string>).path, path);
});

overEach(host, "C2.10 url.query is the query string without the question mark", async (client) => {
  const query = async (path: string) => ((await client.json(path)).url as Record<string, unknown>).query;
  assert.equal(await query("/req/echo?a=1&b=%20+"), "a=1&b=%20+");
  assert.equal(await query("/req/echo?a?b"), "a?b");
  assert.equal(await query("/req/echo?"), null);
  assert.equal(await query("/req/echo"), null);
});

overEach(host, "C2.11 the method is the HTTP method as sent", async (client) => {
  for (const method of ["GET", "POST", "PUT", "PATCH", "DELETE"]) {
    assert.equal((await client.json({ method, path: "/req/echo" })).method, method);
  }
});

overEach(host, "C2.12 the body is the unprocessed request body", async (client) => {
  for (const method of ["POST", "PUT"]) {
    const body = "a=1&b=%20\r\n\0 ünprocessed {}";
    assert.equal((await client.json({ method, path: "/req/echo", body })).body, body);
  }
  assert.equal((await client.json("/req/echo")).body, "");
  assert.equal((await client.json({ method: "POST", path: "/req/echo", body: "" })).body, "");
});

overEach(host, "C2.13 conn is the network connection", async (client) => {
  const conn = await client.json("/req/conn");
  assert.equal(conn.ip, "127.0.0.1");
  assert.equal(conn.serverport, client.port);
  assert.equal(conn.clientport, conn.remote);
  assert.equal(conn.ssl, client.secure);
  await assert.rejects(client.request("/req/close"));
});

overEach(host, "C2.14 secure is true on an encrypted connection and false on a plain one", async (client) => {
  assert.equal((await client.json("/req/echo")).secure, client.secure);
});

overEach(host, "C2.15 formdecode decodes a body of application/x-www-form-urlencoded", async (client) => {
  const reply = await client.json({
    method: "POST",
    path: "/req/form",
    headers: { "content-type": "application/x-www-form-urlencoded" },
    body: "name=J%C3%BCrgen+M&tag=a&tag=b&empty=",
  });
  assert.deepEqual(reply, {
    last: { name: "Jürgen M", tag: "b", empty: "" },
    all: [
      ["name", "Jürgen M"],
      ["tag", "a"],
      ["tag", "b"],
      ["empty", ""],
    ],
  });
});

overEach(host, "C2.16 headers.content_type reports other content types", async (client) => {
  const headers = { "content-type": "application/json" };
  assert.equal(await client.text({ method: "POST", path: "/req/json", headers, body: '{"a":"yes"}' }), "yes");
  assert.equal(await client.status({ method: "POST", path: "/req/json", body: '{"a":"yes"}' }), 415);
});

overEach(host, "D5 the body is text and body_bytes the bytes as they came", async (client) => {
  const reply = await client.json({ method: "POST", path: "/req/echo", body: Buffer.from([0xff, 0x00, 0x41]) });
  assert.equal(reply.bytes, "ff0041");
  assert.equal(reply.body, "\ufffd\0A");
});

overEach(host, "D6 a body in chunks is read like any other", async (client) => {
  async function* pieces() {
    yield "one ";
    yield "two";
  }
  assert.equal((await client.json({ method: "POST", path: "/req/echo", body: pieces() })).body, "one two");
});

overEach(host, "D7 the path is decoded with runs of slashes squeezed, and raw_path is as sent", async (client) => {
  const reply = await client.json("/req//deep///a%20%C3%BC//b");
  assert.equal(reply.path, "/req/deep/a ü/b");
  assert.equal((reply.url as Record<string, string>).raw, "/req//deep///a%20%C3%BC//b");
});

overEach(host, "D8 the wildcard argument is decoded and has no leading slash", async (client) => {
  const argument = async (path: string) => (await client.json(path)).argument;
  assert.equal(await argument("/req/deep/a%20b/c"), "a b/c");
  assert.equal(await argument("/req/deep/a%2Fb"), "a/b");
  assert.equal(await argument("/req/deep//x"), "x");
  assert.equal(await argument("/req/deep/x/y/"), "x/y/");
  assert.equal(await argument("/req/deep/%zz%"), "%zz%");
});

overEach(host, "D9 an encoded question mark is a character of the path", async (client) => {
  assert.equal(await client.status("/req/q%3Fx"), 404);
  assert.equal((await client.json("/req/deep/a%3Fzz?b=1")).argument, "a?zz");
  assert.equal(await client.text("/req/q?x=1"), "a question mark is part of the query");
});

overEach(host, "D10 dot segments are not resolved, but a path that climbs above the root is a 400", async (client) => {
  assert.equal((await client.json("/req/deep/a/../b")).argument, "a/../b");
  for (const path of ["/../req/echo", "/req/../../echo", "/%2e%2e/req/echo", "/..%2freq", "/.."]) {
    assert.equal(await client.status(path), 400, path);
  }
});

overEach(host, "D11 repeated headers are joined", async (client) => {
  const headers = { "x-many": ["a", "b"], cookie: "a=1; b=2" };
  const table = (await client.json({ path: "/req/echo", headers })).headers as Record<string, string>;
  assert.equal(table.x_many, "a, b");
  assert.equal(table.cookie, "a=1; b=2");
});

overEach(host, "D12 each request has an id of its own", async (client) => {
  const ids = new Set<unknown>();
  for (let n = 0; n < 3; n++) ids.add((await client.json("/req/echo")).id);
  assert.equal(ids.size, 3);
  for (const id of ids) assert.match(String(id), /^\S{3,40}$/);
});

overEach(host, "D13 ip is the client's address", async (client) => {
  assert.equal((await client.json("/req/echo")).ip, "127.0.0.1");
});

overEach(host, "D16 with streaming_uploads handlers read body_stream and nothing is buffered", async (client) => {
  async function* pieces() {
    for (let n = 0; n < 20; n++) yield Buffer.alloc(20_000, "x");
  }
  assert.equal(await client.text({ method: "POST", path: "/up/count", body: pieces() }), '400000 ""');
  assert.equal(await client.text({ method: "POST", path: "/up/count", body: "" }), '0 ""');
  assert.equal(await client.text({ method: "POST", path: "/up/early", body: "abc" }), "first piece: abc");
});

overEach(host, "D17 without streaming_uploads body_stream gives the buffered body", async (client) => {
  assert.equal(await client.text({ method: "POST", path: "/req/stream", body: "x".repeat(500) }), "500");
});

overEach(host, "D18 a body over http_max_content_size is a 413 that the client can read", async (client) => {
  const call = (bytes: number) => ({ method: "POST", path: "/req/stream", body: Buffer.alloc(bytes) });
  assert.equal(await client.text(call(100_000)), "100000");
  assert.equal(await client.status(call(100_001)), 413);
  assert.equal(await client.status(call(800_000)), 413);
  async function* unannounced() {
    for (let n = 0; n < 11; n++) yield Buffer.alloc(10_000);
  }
  assert.equal(await client.status({ method: "POST", path: "/req/stream", body: unannounced() }), 413);
});

overEach(host, "D19 a body with a content coding is a 415", async (client) => {
  const headers = { "content-encoding": "gzip" };
  assert.equal(await client.status({ method: "POST", path: "/req/echo", headers, body: "x" }), 415);
  assert.equal(
    (await client.json({ method: "POST", path: "/req/echo", headers: { "content-encoding": "identity" }, body: "x" }))
      .body,
    "x",
  );
});

describe("behind a proxy", () => {
  const forwarded = { "x-forwarded-for": "203.0.113.7", "x-forwarded-proto": "https" };
  const distrusting = withHost({
    config: { trusted_proxies: ["192.0.2.0/24"] },
    modules: {
      mod_http_who(module) {
        module.depends("http");
        module.provides("http", { route: { GET: ({ request }) => `${request.ip} ${request.secure}` } });
      },
    },
  });

  overEach(distrusting, "D14 forwarding headers of a peer that is not trusted are ignored", async (client) => {
    assert.equal(await client.text({ path: "/who", headers: forwarded }), `127.0.0.1 ${client.secure}`);
  });

  overEach(host, "D15 forwarding headers of the loopback are believed by default", async (client) => {
    for (const proto of ["https", "http"]) {
      const headers = { ...forwarded, "x-forwarded-proto": proto };
      const reply = await client.json({ path: "/req/echo", headers });
      assert.deepEqual([reply.ip, reply.secure], ["203.0.113.7", proto === "https"]);
    }
  });
});

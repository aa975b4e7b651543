/** Requests as upstreams receive them, and responses as clients receive them. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { rawExchange } from "#test/support/raw.ts";
import { proxied, seenRequest, upstream } from "./proxied.ts";

describe("a proxied request", () => {
  test("reaches the upstream with its method, query, body and headers, below the path of the app", async () => {
    await using server = await upstream();
    await using host = await proxied({ app: { upstreams: [server.url] } });
    for (const by of ["HTTP/1.1", "HTTPS/1.1", "HTTP/2"] as const) {
      const reply = await host.client(by).request({
        method: "PUT",
        path: "/app/a%20b/%C3%A4?x=1&y",
        headers: { "X-Own": "1", cookie: ["a=1", "b=2"], host: "example.test" },
        body: "hello",
      });
      const seen = seenRequest(reply);
      assert.equal(reply.status, 200, by);
      assert.deepEqual([seen.method, seen.url, seen.body], ["PUT", "/a%20b/%C3%A4?x=1&y", "hello"], by);
      assert.equal(seen.headers["x-own"], "1");
      assert.equal(seen.headers.cookie, "a=1; b=2");
      assert.equal(seen.headers["content-length"], "5");
    }
  });

  test("gets its preflight from the host if the app has CORS on, and else from the upstream", async () => {
    await using server = await upstream();
    const entry = { upstreams: [server.url] };
    await using host = await proxied(
      { open: entry, closed: entry },
      { http_default_cors_enabled: true, http_cors_override: { closed: { enabled: false } } },
    );
    const origin = "https://app.example";
    const preflight = { origin, "access-control-request-method": "PUT" };
    const ask = (path: string, headers: Record<string, string>) =>
      host.client("HTTP/1.1").request({ method: "OPTIONS", path, headers });
    const reply = await ask("/open/a", preflight);
    assert.equal(reply.status, 204);
    assert.match(reply.header("access-control-allow-methods") ?? "", /\bPUT\b/);
    assert.equal(reply.header("access-control-allow-origin"), "*");
    assert.deepEqual(server.seen, []);
    assert.equal((await ask("/open/a", { origin })).status, 200, "no preflight");
    assert.equal((await ask("/closed/a", preflight)).header("access-control-allow-methods"), undefined);
    assert.deepEqual(server.seen, ["OPTIONS /a", "OPTIONS /a"]);
  });

  test("loses hop-by-hop headers, and those that Connection names, in both directions", async () => {
    await using server = await upstream((request, response) => {
      response.writeHead(200, [
        "Connection", "X-Hop, keep-alive", "X-Hop", "1", "Keep-Alive", "timeout=9", "Proxy-Authenticate", "Basic",
        "X-Kept", "1", "Set-Cookie", "a=1", "Set-Cookie", "b=2", "X-Seen", Object.keys(request.headers).sort().join(" "),
      ]); // biome-ignore format: pairs
      response.end("x");
    });
    await using host = await proxied({ app: { upstreams: [server.url] } });
    const headers = {
      connection: "X-Mine, TE", "x-mine": "1", "keep-alive": "timeout=3", te: "trailers, deflate",
      "proxy-authorization": "Basic x", "proxy-connection": "keep-alive", upgrade: "h2c",
    }; // biome-ignore format: pairs
    const reply = await host.client("HTTP/1.1").request({ path: "/app", headers });
    assert.deepEqual(reply.header("x-seen")?.split(" "), [
      "connection", "forwarded", "host", "te", "via", "x-forwarded-for", "x-forwarded-host", "x-forwarded-prefix",
      "x-forwarded-proto", "x-real-ip", "x-request-id",
    ]); // biome-ignore format: a list of words
    assert.deepEqual(
      ["x-hop", "proxy-authenticate", "x-kept"].map((name) => reply.header(name)),
      [undefined, undefined, "1"],
    );
    assert.deepEqual(
      reply.lines.filter(([name]) => name.toLowerCase() === "set-cookie").map(([, value]) => value),
      ["a=1", "b=2"],
    );
  });

  test("describes the client by the headers of a trusted proxy, and not by those of anybody else", async () => {
    await using server = await upstream();
    await using host = await proxied({ app: { upstreams: [server.url] } });
    const headers = {
      host: "site.test",
      "x-forwarded-for": "192.0.2.7, 10.0.0.1",
      "x-forwarded-proto": "https",
      "x-forwarded-host": "outer.test",
      x_forwarded_for: "6.6.6.6",
      forwarded: "for=6.6.6.6",
    };
    const trusted = seenRequest(await host.client("HTTP/1.1").request({ path: "/app", headers })).headers;
    assert.equal(trusted["x-forwarded-for"], "192.0.2.7, 10.0.0.1, 127.0.0.1");
    assert.deepEqual([trusted["x-forwarded-proto"], trusted["x-forwarded-host"]], ["https", "outer.test"]);
    assert.match(String(trusted.forwarded), /^for=192\.0\.2\.7;proto=https;host=outer\.test, for=10\.0\.0\.1, for=127/);
    assert.deepEqual([trusted.x_forwarded_for, trusted["x-forwarded-prefix"]], [undefined, "/app"]);

    await using modern = await proxied({ app: { upstreams: [server.url] } }, { http_legacy_x_forwarded: false });
    const chain = { host: "site.test", forwarded: "for=192.0.2.7;host=outer.test" };
    const newer = seenRequest(await modern.client("HTTP/1.1").request({ path: "/app", headers: chain })).headers;
    assert.equal(newer["x-forwarded-host"], "outer.test");
    assert.equal(newer.forwarded, `${chain.forwarded}, for=127.0.0.1;proto=http;host=site.test`);

    await using open = await proxied({ app: { upstreams: [server.url] } }, { trusted_proxies: [] });
    const own = seenRequest(await open.client("HTTP/2").request({ path: "/app", headers })).headers;
    assert.deepEqual(
      ["x-forwarded-for", "x-forwarded-proto", "x-forwarded-host", "forwarded", "x-real-ip"].map((name) => own[name]),
      ["127.0.0.1", "https", "site.test", "for=127.0.0.1;proto=https;host=site.test", "127.0.0.1"],
    );
    assert.doesNotMatch(JSON.stringify(own), /6\.6\.6\.6/);
  });

  test("follows the options: path, host and headers", async () => {
    await using server = await upstream((request, response) => {
      response.setHeader("Server", "inner").setHeader("Location", `http://${request.headers["x-at"]}/v2/next?a`);
      response.end(JSON.stringify({ url: request.url, headers: request.headers }));
    });
    const entry = {
      upstreams: [`${server.url}/v2/`],
      host: "upstream",
      request_headers: { "X-At": new URL(server.url).host, "X-Secret": "s", "User-Agent": "", Forwarded: "" },
      response_headers: { Server: "", "X-Frame-Options": "DENY" },
    };
    await using host = await proxied({
      strip: entry,
      keep: { ...entry, path: "keep" },
      moved: { ...entry, path: "/inner/", host: "name.test" },
    });
    const ask = async (path: string) => {
      const reply = await host
        .client("HTTP/1.1")
        .request({ path, headers: { "x-secret": "theirs", "user-agent": "u" } });
      return { reply, seen: seenRequest(reply) };
    };
    const { reply, seen } = await ask("/strip/a?b");
    assert.equal(seen.url, "/v2/a?b");
    assert.deepEqual([seen.headers.host, seen.headers["x-secret"]], [new URL(server.url).host, "s"]);
    assert.deepEqual([seen.headers["user-agent"], seen.headers.forwarded], [undefined, undefined]);
    assert.deepEqual([reply.header("server"), reply.header("x-frame-options")], [undefined, "DENY"]);
    assert.equal(reply.header("location"), "/strip/next?a");
    assert.equal((await ask("/strip")).seen.url, "/v2/");
    assert.equal((await ask("/keep/a")).seen.url, "/v2/keep/a");
    const moved = await ask("/moved//a/");
    assert.deepEqual([moved.seen.url, moved.seen.headers.host], ["/v2/inner/a/", "name.test"]);
  });

  test("ends with 508 if an upstream forwards it back in a circle", async () => {
    await using server = await upstream();
    await using host = await proxied({ app: { upstreams: [server.url] } });
    const ask = (hops: number) =>
      host
        .client("HTTP/1.1")
        .request({ path: "/app", headers: { via: new Array(hops).fill("1.1 modhost").join(", ") } });
    const few = await ask(7);
    assert.deepEqual([few.status, seenRequest(few).headers.via?.split(", ").length], [200, 8]);
    assert.equal((await ask(8)).status, 508);
    assert.equal(server.seen.length, 1);
  });

  test("is refused if an upstream might take its path for that of another app", async () => {
    await using server = await upstream();
    await using host = await proxied({ app: { upstreams: [`${server.url}/inner`] } });
    const climbing = [
      "/x/../../app/y",
      "/..%2fsecret",
      "/%2e%2e/app",
      "/a/..%5c..%5cb",
      "/..;a/b",
      "/%ff%2f%2e%2e%2fb",
    ];
    const staying = ["/./b", "/%2e/b", "/.;a/b", "/a%5c.%5cb", "/%2e", "/b%00", "/b#c"];
    for (const path of [...climbing, ...staying]) {
      const reply = await rawExchange(host.http, `GET /app${path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`);
      assert.match(reply, /^HTTP\/1\.1 400/, path);
    }
    assert.deepEqual(server.seen, []);
    for (const path of ["/.well-known/a", "/a..b/...", "/b%23c", "/%ff%2fa", "/a;b"]) {
      assert.equal(await host.client("HTTP/1.1").status(`/app${path}`), 200, path);
    }
  });

  test("has no header from the client that the option sets, in any spelling, and no such trailer", async () => {
    await using server = await upstream();
    const request_headers = { "X-Key": "k", "X-User": "", X_Own: "o" };
    await using host = await proxied({ app: { upstreams: [server.url], request_headers } });
    const lines = ["x_key", "X_USER", "X-User", "x-own", "X-Other"].map((name) => `${name}: theirs\r\n`).join("");
    const reply = await rawExchange(
      host.http,
      `POST /app HTTP/1.1\r\nHost: a\r\nConnection: close\r\n${lines}Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n${lines}\r\n`,
    );
    const { headers, trailers } = seenRequest({ text: /\{.*\}/s.exec(reply)?.[0] ?? reply });
    const named = Object.entries(headers).filter(([name]) => name.startsWith("x") && !/^x-(f|r)/.test(name));
    assert.deepEqual(named, [
      ["x-other", "theirs"],
      ["x-key", "k"],
      ["x_own", "o"],
    ]);
    assert.deepEqual(trailers, { "x-other": "theirs" });
  });

  test("is not redirected to another server by two slashes in an upstream's address of itself", async () => {
    await using server = await upstream((request, response) => {
      response.writeHead(302, { Location: `http://${request.headers.host}${request.url}` }).end();
    });
    const entry = { upstreams: [server.url], host: "upstream" };
    const apps = { root: entry, unchanged: { ...entry, path: "keep" } };
    for (const app of ["root", "unchanged"] as const) {
      await using host = await proxied({ [app]: { ...apps[app], path: "keep" } }, { http_paths: { [app]: "/" } });
      for (const path of ["//other.test/x", "/%5cother.test/x"]) {
        const reply = await host.client("HTTP/1.1").request({ path });
        assert.equal(reply.status, 302);
        assert.doesNotMatch(reply.header("location") ?? "//", /^[/\\]{2}/);
      }
    }
  });

  test("keeps the bytes of headers beyond ASCII in both directions, with any body", async () => {
    const value = "caf\u00c3\u00a9";
    await using server = await upstream((request, response) => {
      request.resume();
      const type = request.url === "/text" ? ["Content-Type", "text/plain"] : [];
      const named = ["Location", `/${value}`, "Content-Disposition", `attachment; filename="${value}"`];
      const length = request.url === "/empty" ? 0 : 2;
      const seen = ["X-Seen", request.headers["x-name"] as string];
      response.writeHead(302, [...named, ...seen, ...type, "Content-Length", String(length)]);
      // Bytes: Node would write the head in the encoding of a string.
      response.end(length === 0 ? undefined : Buffer.from("ok"));
    });
    await using host = await proxied({ app: { upstreams: [server.url] } });
    for (const by of ["HTTP/1.1", "HTTP/2"] as const)
      for (const path of ["empty", "text", "bytes"])
        for (const method of ["GET", "HEAD", "POST"]) {
          const headers = { "x-name": value };
          const body = method === "POST" ? Buffer.from("sent") : undefined;
          const { header } = await host
            .client(by)
            .request({ method, path: `/app/${path}`, headers, ...(body && { body }) });
          assert.deepEqual(
            [header("location"), header("content-disposition"), header("x-seen")],
            [`/${value}`, `attachment; filename="${value}"`, value],
            `${by} ${method} ${path}`,
          );
        }
  });

  test("redirects clients to the app if the upstream redirects to itself, also without a scheme and in any case", async () => {
    await using server = await upstream((request, response) => {
      const location = String(request.headers["x-location"]).replace("UPSTREAM", `127.0.0.1:${server.port}`);
      response.writeHead(302, { Location: location }).end();
    });
    await using host = await proxied({ app: { upstreams: [server.url] } });
    const locations = {
      "//UPSTREAM/x": "/app/x",
      "http://UPSTREAM/x?y": "/app/x?y",
      "HTTP://UPSTREAM": "/app/",
      "//UPSTREAM1/x": `//127.0.0.1:${server.port}1/x`,
      "https://UPSTREAM/x": `https://127.0.0.1:${server.port}/x`,
      "//other.example/x": "//other.example/x",
    };
    for (const [given, wanted] of Object.entries(locations)) {
      const { header } = await host.client("HTTP/1.1").request({ path: "/app/", headers: { "x-location": given } });
      assert.equal(header("location"), wanted, given);
    }
  });

  test("is forwarded no further than Max-Forwards allows for OPTIONS and TRACE", async () => {
    await using server = await upstream();
    await using host = await proxied({ app: { upstreams: [server.url] } });
    const ask = (method: string, hops: string) =>
      host.client("HTTP/1.1").request({ method, path: "/app/", headers: { "max-forwards": hops } });
    const options = await ask("OPTIONS", "0");
    assert.deepEqual([options.status, options.text], [200, ""]);
    assert.match(options.header("allow") ?? "", /GET.*POST/);
    assert.equal((await ask("TRACE", "0")).status, 501);
    assert.deepEqual(server.seen, []);
    assert.equal(seenRequest(await ask("OPTIONS", "2")).headers["max-forwards"], "1");
    assert.equal(seenRequest(await ask("GET", "0")).headers["max-forwards"], "0", "it says nothing of other methods");
    assert.equal(seenRequest(await ask("OPTIONS", "x")).headers["max-forwards"], undefined);
  });

  test("gets a 426 with the protocol that the upstream requires", async () => {
    await using server = await upstream((_, response) => {
      response.writeHead(426, { Upgrade: "websocket", Connection: "Upgrade" }).end("no");
    });
    await using host = await proxied({ app: { upstreams: [server.url] } });
    const { status, header } = await host.client("HTTP/1.1").request("/app/");
    assert.deepEqual([status, header("upgrade"), header("connection")], [426, "websocket", "Upgrade"]);
    assert.equal((await host.client("HTTP/2").request("/app/")).status, 426);
  });

  test("gets 502 if the upstream sends interim responses without end", async () => {
    await using server = await upstream((request, response) => {
      const count = request.url === "/few" ? 100 : 20_000;
      response.socket?.write("HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n".repeat(count));
      response.end("answer");
    });
    await using host = await proxied({ app: { upstreams: [server.url] } });
    assert.equal((await host.client("HTTP/1.1").request("/app/many")).status, 502);
    assert.equal((await host.client("HTTP/1.1").request("/app/few")).text, "answer");
    assert.match(host.log(), /too many interim responses/);
  });
});

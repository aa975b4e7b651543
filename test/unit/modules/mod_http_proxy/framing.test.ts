/**
 * The proxy keeps the framing of requests, so that no client can smuggle a request to an upstream.
 */
import assert from "node:assert/strict";
import { Readable } from "node:stream";
import { describe, test } from "node:test";
import { announcedBody } from "#core/relay/fields.ts";
import { OutgoingRequest } from "#core/relay/outgoing_request.ts";
import type { Settings } from "#modules/mod_http_proxy/settings.ts";
import { Upstream } from "#modules/mod_http_proxy/upstream.ts";
import { eventually } from "#test/support/eventually.ts";
import { rawExchange } from "#test/support/raw.ts";
import { proxied, seenRequest, upstream } from "./proxied.ts";

const smuggled = `${"\r\n".repeat(60)}GET /internal HTTP/1.1\r\nHost: x\r\n\r\nPOST /taken HTTP/1.1\r\nX: `;

describe("a proxied request", () => {
  test("has the client's body, whatever other spellings of Content-Length say", async () => {
    await using server = await upstream((request, response) => response.end(`${request.method} ${request.url}`));
    await using host = await proxied({ app: { upstreams: [server.url], path: "keep" } });
    const lengths = ["Content_Length", "content_length", "Content.Length", "Content-Length-", "Transfer_Encoding"];
    for (const by of ["HTTP/1.1", "HTTPS/1.1", "HTTP/2"] as const) {
      for (const name of lengths) {
        for (const method of ["GET", "POST"]) {
          const value = name.startsWith("T") ? "chunked" : "420";
          const client = host.client(by);
          const responses = [
            await client.request({ method, path: "/app/one", headers: { [name.toLowerCase()]: value } }),
            await client.request({ method: "POST", path: "/app/two", body: smuggled }),
            await client.request({ path: "/app/mine", headers: { cookie: "session=victim" } }),
          ];
          const texts = responses.map(({ text }) => text);
          assert.deepEqual(texts, [`${method} /app/one`, "POST /app/two", "GET /app/mine"], `${by} ${name}`);
        }
      }
    }
    assert.deepEqual(
      server.seen.filter((line) => !line.includes(" /app/")),
      [],
    );
  });

  test("has no spelling of a header that the proxy writes itself", async () => {
    await using server = await upstream();
    const entry = { upstreams: [server.url], request_headers: { "X-Api-Key": "operator", X_Role: "" } };
    await using host = await proxied({ app: entry }, { trusted_proxies: [] });
    const names = [
      "Connection", "Keep-Alive", "Proxy-Connection", "Transfer-Encoding", "Content-Length", "Proxy-Authorization",
      "Http2-Settings", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Forwarded-Prefix", "X-Forwarded-Ssl",
      "X-Real-IP", "X-Request-Id", "X-Api-Key", "X-Role",
    ]; // biome-ignore format: a list of words
    const forged = Object.fromEntries(
      names
        .flatMap((name) => ["_", "."].map((dash) => [name.toLowerCase().replaceAll("-", dash), "forged"]))
        .filter(([name]) => name !== "connection"),
    );
    for (const by of ["HTTP/1.1", "HTTP/2"] as const) {
      const more = { ...forged, "x-forwarded-ssl": "forged", proxy: "forged", x_own: "1", "x-role": "forged" };
      const { raw } = seenRequest(await host.client(by).request({ path: "/app/", headers: more }));
      assert.doesNotMatch(JSON.stringify(raw), /forged/, by);
      assert.ok(raw.includes("x_own"), "other names go on as they are");
      assert.ok(raw.includes("operator"));
    }
    await using behind = await proxied({ app: entry });
    const relayed = { "x-forwarded-ssl": "on", x_forwarded_ssl: "forged" };
    const { raw } = seenRequest(await behind.client("HTTP/1.1").request({ path: "/app/", headers: relayed }));
    assert.ok(raw.includes("on") && !raw.includes("forged"), "a trusted proxy writes the exact name");
  });

  test("has a path in ASCII even if it came by HTTP/2, as HTTP/1.1 requires", async () => {
    await using server = await upstream();
    await using host = await proxied({
      app: { upstreams: [server.url] },
      unchanged: { upstreams: [server.url], path: "keep" },
    });
    const paths = ["/app/a\xff?b=\x80", "/unchanged/\xc3\xa9"];
    for (const path of paths) await host.client("HTTP/2").request(path);
    assert.deepEqual(server.seen, ["GET /a%FF?b=%80", "GET /unchanged/%C3%A9"]);
  });

  test("closes its upstream connection if the body has a different length than announced", async () => {
    await using server = await upstream((_, response) => response.end("early"));
    server.server.keepAliveTimeout = 60_000;
    const settings = {
      ...{ keep_alive: 60, max_idle: 8, tls_server_name: "", tls_insecure: false, ca: undefined, max_body: 0 },
      ...{ connect_timeout: 10, response_timeout: 10, idle_timeout: 10, requestHeaders: new Map() },
    };
    const address = {
      name: "u",
      secure: false,
      hostname: "127.0.0.1",
      port: server.port,
      authority: "u",
      basePath: "",
    };
    const target = new Upstream({ ...address, socketPath: undefined }, settings as unknown as Settings);
    const ask = async (length: string | undefined, pieces: readonly string[]) => {
      const body = Readable.from(pieces.map((piece) => Buffer.from(piece)));
      const headers = ["Host", "u", ...(length === undefined ? [] : ["Content-Length", length])] as never;
      target.begin();
      const outgoing = new OutgoingRequest(target.open({ method: "POST", path: "/", headers }), {
        body: announcedBody(body, { hasBody: length !== undefined, length, expects: false }),
        ended: () => target.end(),
      });
      await outgoing.response.then(
        ({ incoming }) => incoming.on("error", () => undefined).resume(),
        () => undefined,
      );
      await eventually("the end of the exchange", () => target.inFlight === 0);
    };
    await ask("5", ["he", "llo"]);
    assert.equal(server.sockets.size, 1, "the connection stays open after a whole request");
    for (const length of ["7", "4"]) {
      await ask(length, ["he", "llo"]);
      await eventually("the end of the connection", () => server.sockets.size === 0, { within: 5000 });
    }
    target.retire();
  });
});

describe("a response", () => {
  test("has its own length, whatever other spellings of Content-Length say", async () => {
    const lengths = ["Content_Length", "3", "content.length", "99", "Transfer_Encoding", "x", "Trailer_", "X-A"];
    await using server = await upstream((request, response) => {
      const own = request.url === "/known" ? ["Content-Length", "9"] : [];
      response.writeHead(200, [...lengths, ...own, "X-Own", "1"]).end("the whole");
    });
    await using host = await proxied({ app: { upstreams: [server.url] } });
    for (const by of ["HTTP/1.1", "HTTP/2"] as const) {
      for (const path of ["/app/known", "/app/open"]) {
        const reply = await host.client(by).request(path);
        assert.deepEqual([reply.text, reply.header("x-own")], ["the whole", "1"], `${by} ${path}`);
        const names = reply.lines.map(([name]) => name.toLowerCase()).filter((name) => /length|encoding/.test(name));
        assert.ok(
          names.every((name) => name === "content-length" || name === "transfer-encoding"),
          names.join(),
        );
      }
    }
  });

  test("in a transfer coding that nobody removes is a fault of the upstream, and is not forwarded without the coding's name", async () => {
    const codings = ["gzip, chunked", "gzip", "chunked, gzip", "xchunked", "chunked, chunked"];
    await using server = await upstream((request, response) => {
      const coding = decodeURIComponent(String(request.url).slice(1));
      response.socket?.end(`HTTP/1.1 200 OK\r\nTransfer-Encoding: ${coding}\r\n\r\n3\r\nabc\r\n0\r\n\r\n`);
    });
    await using host = await proxied({ app: { upstreams: [server.url], fail_after: 0 } });
    for (const by of ["HTTP/1.1", "HTTP/2"] as const) {
      for (const coding of codings) {
        const { status } = await host.client(by).request(`/app/${encodeURIComponent(coding)}`);
        assert.equal(status, 502, `${by} ${coding}`);
      }
      assert.equal((await host.client(by).request("/app/Chunked")).text, "abc", by);
    }
  });

  test("with an informational status is not sent to a client of HTTP/1.0, which would read it as the final one", async () => {
    await using server = await upstream((_, response) => {
      response.writeEarlyHints({ link: "</a.css>; rel=preload" });
      response.end("whole");
    });
    await using host = await proxied({ app: { upstreams: [server.url] } });
    const ask = (version: string) =>
      rawExchange(host.http, `GET /app HTTP/${version}\r\nHost: a\r\nConnection: close\r\n\r\n`);
    assert.match(await ask("1.1"), /^HTTP\/1\.1 103 /);
    assert.match(await ask("1.0"), /^HTTP\/1\.1 200 .*whole$/s);
  });

  test("may have headers with the names of inherited properties", async () => {
    const names = ["__proto__", "constructor", "toString"];
    await using server = await upstream((_, response) => {
      response
        .writeHead(
          200,
          [...names, ...names].flatMap((name) => [name, "1"]),
        )
        .end("whole");
    });
    await using host = await proxied({ app: { upstreams: [server.url] } });
    const { status, lines } = await host.client("HTTP/1.1").request("/app");
    assert.equal(status, 200);
    const passed = lines
      .map(([name]) => name.toLowerCase())
      .filter((name) => /proto|constructor|tostring|^\d/.test(name));
    assert.deepEqual(passed.sort(), ["constructor", "constructor", "tostring", "tostring"]);
  });

  test("has no trailers that belong in the head, and neither has a request", async () => {
    const head = [
      "Set-Cookie: a=1",
      "Content_Length: 3",
      "Authorization: x",
      "If-Match: x",
      "X-Api-Key: x",
      "X_Api_Key: x",
      "X.Real.IP: x",
    ];
    const trailers = [...head.slice(0, 4), "Server: x", "X-Sum: 1"].map((line) => line.split(": ") as [string, string]);
    let came: readonly string[] = [];
    await using server = await upstream((request, response) => {
      request.resume().once("end", () => {
        came = request.rawTrailers;
        response.writeHead(200, { Trailer: "X-Sum, Set-Cookie, Server" }).write("whole");
        response.addTrailers(trailers);
        response.end();
      });
    });
    const options = { request_headers: { "X-Api-Key": "own" }, response_headers: { Server: "" } };
    await using host = await proxied({ app: { upstreams: [server.url], ...options } });
    const fields = "Host: a\r\nConnection: close\r\nTransfer-Encoding: chunked";
    const lines = [...head, "X-Sum: 2"].join("\r\n");
    const response = await rawExchange(
      host.http,
      `POST /app HTTP/1.1\r\n${fields}\r\n\r\n1\r\nx\r\n0\r\n${lines}\r\n\r\n`,
    );
    assert.deepEqual(came, ["X-Sum", "2"]);
    assert.match(response, /\r\nTrailer: X-Sum\r\n/);
    assert.match(response, /whole\r\n0\r\nX-Sum: 1\r\n\r\n$/);
  });

  test("keeps all of its headers, up to the size limit of the head", async () => {
    const many = Array.from({ length: 3000 }, (_, at) => [`X-${at}`, "1"]).flat();
    await using server = await upstream((_, response) => {
      response.writeHead(200, [...many, "Content-Security-Policy", "sandbox", "Content-Length", "5"]).end("whole");
    });
    await using host = await proxied({ app: { upstreams: [server.url] } });
    const response = await rawExchange(host.http, "GET /app HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    assert.match(response, /\r\nX-2999: 1\r\n(?:.*\r\n)*Content-Length: 5\r\n(?:.*\r\n)*\r\nwhole$/);
    assert.match(response, /\r\nContent-Security-Policy: sandbox\r\n/);
  });
});

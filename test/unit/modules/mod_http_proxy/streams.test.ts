/**
 * Bodies that the proxy forwards: as fast as the receiver reads them, without delay, and broken off
 * if the sender is lost.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { describe, test } from "node:test";
import { gzipSync } from "node:zlib";
import { RawConnection, rawExchange } from "#test/support/raw.ts";
import { proxied, seenRequest, upstream } from "./proxied.ts";

const head = (path: string, fields = "", method = "GET") => `${method} ${path} HTTP/1.1\r\nHost: a\r\n${fields}\r\n`;

describe("a response", () => {
  test("is forwarded piece by piece, and is broken off when the upstream is lost in its middle", async () => {
    let go: (() => void) | undefined;
    await using server = await upstream((request, response) => {
      response.writeHead(200, request.url === "/known" ? { "Content-Length": "100" } : {});
      response.write("data: 1\n\n");
      go = () => void response.socket?.destroy();
    });
    await using host = await proxied({ app: { upstreams: [server.url] } });
    for (const path of ["/app/events", "/app/known"]) {
      using client = await RawConnection.open(host.http);
      client.write(head(path));
      await client.until(/data: 1/);
      go?.();
      assert.doesNotMatch(await client.end(), /\r\n0\r\n\r\n$/, path);
    }
    const http2 = host.client("HTTP/2").request("/app/events");
    while (server.seen.length < 3) await once(server.server, "request");
    setImmediate(() => go?.());
    await assert.rejects(http2);
    assert.match(host.log(), /the upstream http:\/\/127\.0\.0\.1:\d+ failed GET \/app\/events/);
    assert.doesNotMatch(host.log(), /"level":"error"/, "the fault is not the module's");
  });

  test("is forwarded piece by piece, and is broken off, behind guards and compression as well", async () => {
    let go: (() => void) | undefined;
    await using server = await upstream((_, response) => {
      response.writeHead(200, { "Content-Type": "text/event-stream" });
      response.write("data: 1\n\n");
      go = () => void response.socket?.destroy();
    });
    const modules_enabled = ["http", "http_guard", "http_compress", "http_proxy"];
    const http_guard = { app: { secure_headers: true } };
    await using host = await proxied({ app: { upstreams: [server.url] } }, { modules_enabled, http_guard });
    for (const fields of ["", "Accept-Encoding: gzip\r\n"]) {
      using client = await RawConnection.open(host.http);
      client.write(head("/app/events", fields));
      await client.until(/X-Content-Type-Options: nosniff.*\r\n\r\n[^\r]+\r\n[^\r]{9}/s);
      go?.();
      assert.doesNotMatch(await client.end(), /\r\n0\r\n\r\n$/);
    }
    assert.doesNotMatch(host.log(), /"level":"error"/, "the fault is not the module's");
  });

  test("has the length, the trailers and the hints of the upstream, and a body only if the upstream sends one", async () => {
    await using server = await upstream((request, response) => {
      if (request.url === "/none") response.writeHead(204).end();
      else if (request.url === "/same") response.writeHead(304, { ETag: '"a"' }).end();
      else if (request.method === "HEAD") response.writeHead(200, { "Content-Length": "77" }).end();
      else {
        response.writeEarlyHints({ link: "</a.css>; rel=preload; as=style" });
        response.writeHead(200, "Fine", { Trailer: "X-Sum", "Content-Type": "text/plain" });
        response.write("body");
        response.addTrailers({ "X-Sum": "4" });
        response.end();
      }
    });
    await using host = await proxied({ app: { upstreams: [server.url] } });
    for (const by of ["HTTP/1.1", "HTTP/2"] as const) {
      const client = host.client(by);
      const none = await client.request("/app/none");
      const same = await client.request("/app/same");
      assert.deepEqual([none.status, none.bytes.length, none.header("content-length")], [204, 0, undefined]);
      assert.deepEqual([same.status, same.header("etag")], [304, '"a"']);
      const head = await client.request({ method: "HEAD", path: "/app/" });
      assert.deepEqual([head.status, head.header("content-length")], [200, "77"]);
      const full = await client.request("/app/");
      assert.deepEqual([full.text, full.trailers["x-sum"]], ["body", "4"], by);
    }
    using raw = await RawConnection.open(host.http);
    raw.write(head("/app/"));
    await raw.until(/^HTTP\/1\.1 103 Early Hints\r\nLink: <\/a\.css>.*HTTP\/1\.1 200 Fine\r\n/s);
    assert.equal(server.sockets.size, 1, "one connection was used again and again");
  });

  test("has only hints that can be parsed in one way, so that no link blocks the host", async () => {
    const hints = [
      '</a.css>; rel=preload; as="style"',
      `</b.css>${";a=b".repeat(60)} "`,
      `</c.css>${";=a=".repeat(60)}"`,
    ];
    await using server = await upstream((_, response) => {
      const lines = hints.map((link) => `Link: ${link}\r\n`).join("");
      response.socket?.write(`HTTP/1.1 103 Early Hints\r\n${lines}\r\n`);
      response.end("body");
    });
    await using host = await proxied({ app: { upstreams: [server.url] } });
    using raw = await RawConnection.open(host.http);
    raw.write(head("/app"));
    const [, links] = await raw.until(/^HTTP\/1\.1 103 Early Hints\r\n(.*?)\r\n\r\nHTTP\/1\.1 200 OK\r\n.*body$/s);
    assert.equal(links, `Link: ${hints[0]}`);
    const response = await host.client("HTTP/2").request("/app");
    assert.equal(response.text, "body");
  });

  test("is no longer fetched when the client has left", async () => {
    const gone = Promise.withResolvers<void>();
    await using server = await upstream((_, response) => {
      response.write("begun");
      response.once("close", () => gone.resolve());
    });
    await using host = await proxied({ app: { upstreams: [server.url] } });
    const client = await RawConnection.open(host.http);
    client.write(head("/app"));
    await client.until(/begun/);
    client.destroy();
    await gone.promise;
    assert.doesNotMatch(host.log(), /failed GET/, "the upstream has done nothing wrong");
  });

  test("is fetched no faster than the client reads it", async () => {
    const piece = Buffer.alloc(64 * 1024);
    let written = 0;
    await using server = await upstream(async (_, response) => {
      let wake = () => undefined as void;
      response.on("drain", () => wake()).on("close", () => wake());
      while (written < 256 * 1024 * 1024 && !response.destroyed) {
        written += piece.length;
        if (!response.write(piece)) await new Promise((resolve) => (wake = resolve as () => void));
      }
      response.end();
    });
    await using host = await proxied({ app: { upstreams: [server.url] } });
    const client = await RawConnection.open(host.http);
    client.socket.pause();
    client.write(head("/app"));
    let before = -1;
    while (before !== written || written === 0) {
      before = written;
      await new Promise((resolve) => setTimeout(resolve, 300));
    }
    client.destroy();
    assert.ok(written < 64 * 1024 * 1024, `${written} bytes were fetched for nobody`);
  });
});

describe("a request body", () => {
  test("is forwarded as it arrives: coded, chunked, with trailers, and when the upstream requests it", async () => {
    await using server = await upstream();
    await using host = await proxied({ app: { upstreams: [server.url] } });
    const zipped = gzipSync("hello");
    const coded = await host
      .client("HTTP/1.1")
      .request({ method: "POST", path: "/app", headers: { "content-encoding": "gzip" }, body: zipped });
    assert.equal(seenRequest(coded).headers["content-length"], String(zipped.length));
    using raw = await RawConnection.open(host.http);
    raw.write(head("/app", "Transfer-Encoding: chunked\r\nTrailer: X-Sum\r\nExpect: 100-continue\r\n", "POST"));
    await raw.until(/^HTTP\/1\.1 100 Continue\r\n\r\n/);
    raw.write("5\r\nhello\r\n");
    raw.write("0\r\nX-Sum: 5\r\nX_Forwarded_For: 6.6.6.6\r\nHost: b\r\n\r\n");
    const [, json = ""] = await raw.until(/\r\n(\{.*\})/);
    const { body, trailers, headers } = seenRequest({ text: json });
    assert.deepEqual(Object.keys(trailers), ["x-sum"]);
    assert.deepEqual([body, trailers["x-sum"], headers["transfer-encoding"]], ["hello", "5", "chunked"]);
  });

  test("is not requested when the upstream refuses it by its headers", async () => {
    await using server = await upstream();
    server.server.on("checkContinue", (_, response) => {
      response.writeHead(417, { Connection: "close" }).end();
    });
    await using host = await proxied({ app: { upstreams: [server.url] } });
    using raw = await RawConnection.open(host.http);
    raw.write(head("/app", "Content-Length: 5\r\nExpect: 100-continue\r\n", "PUT"));
    await raw.until(/^HTTP\/1\.1 417 /);
  });

  test("is refused if it is too large, and is read no faster than the upstream reads it", async () => {
    await using server = await upstream((request) => void request.pause());
    await using host = await proxied({
      app: { upstreams: [server.url] },
      small: { upstreams: [server.url], max_body: 10 },
    });
    const client = host.client("HTTP/1.1");
    assert.equal((await client.request({ method: "POST", path: "/small", body: "x".repeat(11) })).status, 413);
    assert.deepEqual(server.seen, [], "it is known beforehand");
    const pieces = (async function* () {
      yield "123456";
      yield "789012";
    })();
    assert.equal((await client.request({ method: "POST", path: "/small", body: pieces })).status, 413);
    using raw = await RawConnection.open(host.http);
    raw.write(head("/app", `Content-Length: ${2 ** 30}\r\n`, "POST"));
    const piece = Buffer.alloc(1024 * 1024);
    let sent = 0;
    while (sent < 256 && raw.socket.writableLength === 0) {
      raw.socket.write(piece);
      sent += 1;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    assert.ok(sent < 64, `${sent} MiB were taken in for a server that reads nothing`);
    // A connection that nobody reads does not show that its client has left. It ends with its
    // upstream.
    await server.stop();
  });

  test("reaches no upstream if its length or form is ambiguous", async () => {
    await using server = await upstream();
    await using host = await proxied({ app: { upstreams: [server.url] } });
    const post = (fields: string, body: string) => head("/app", fields, "POST") + body;
    for (const text of [
      post("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"),
      post("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", "0\r\n\r\nGET /app HTTP/1.1\r\n\r\n"),
      post("Content-Length: 5\r\nContent-Length: 6\r\n", "hello!"),
      post("Transfer-Encoding : chunked\r\n", "0\r\n\r\n"),
      post("X-A: 1\r\n Transfer-Encoding: chunked\r\n", ""),
      head("/app", "Content-Length: +5\r\n", "POST"),
    ]) {
      assert.match(await rawExchange(host.http, `${text}`), /^HTTP\/1\.1 400 /, JSON.stringify(text));
    }
    const coded = await rawExchange(host.http, post("Transfer-Encoding: xchunked\r\n", "0\r\n\r\n"));
    assert.match(coded, /^HTTP\/1\.1 501 /);
    assert.deepEqual(server.seen, []);
    // The proxy finds the broken chunk after it has forwarded the head, so the upstream gets a body
    // without an end.
    const broken = await rawExchange(host.http, post("Transfer-Encoding: chunked\r\n", "5\r\nhello\r\nzz\r\n"));
    assert.match(broken, /^HTTP\/1\.1 400 /);
    assert.equal((await host.client("HTTP/1.1").request("/app/after")).status, 200);
  });
});

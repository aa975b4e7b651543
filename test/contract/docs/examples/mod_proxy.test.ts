import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type IncomingMessage, type RequestListener, request } from "node:http";
import { type AddressInfo, createServer as createRawServer } from "node:net";
import { text } from "node:stream/consumers";
import { describe, test } from "node:test";
import { createTestHost } from "#core/testing/index.ts";
import { rawExchange } from "#test/support/raw.ts";
import { exampleFile } from "./support.ts";

/** Starts a server behind the proxy. */
async function upstream(listener: RequestListener) {
  const server = createServer(listener).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const close = async () => {
    server.closeAllConnections();
    server.close();
    await once(server, "close");
  };
  return { url: `http://127.0.0.1:${port}`, server, [Symbol.asyncDispose]: close };
}

const start = (proxy_upstream: string, config: Record<string, unknown> = {}) =>
  createTestHost({ modules: [exampleFile("proxy")], config: { proxy_upstream, ...config } });

/** Responds with the request that it got. */
const mirror: RequestListener = (incoming, response) => {
  const chunks: Buffer[] = [];
  incoming.on("data", (chunk: Buffer) => chunks.push(chunk));
  incoming.on("end", () => {
    response.setHeader("content-type", "application/json");
    response.setHeader("set-cookie", ["a=1", "b=2"]);
    const { method, url, headers } = incoming;
    response.end(JSON.stringify({ method, url, headers, body: Buffer.concat(chunks).toString() }));
  });
};

interface Mirrored {
  readonly method: string;
  readonly url: string;
  readonly headers: Record<string, string>;
  readonly body: string;
}

describe("the example mod_proxy", () => {
  test("forwards method, path, query, headers and body, and returns the response", async () => {
    await using behind = await upstream(mirror);
    await using running = await start(`${behind.url}/api`);
    const response = await running.fetch("/proxy/a%2Fb/c%20d?x=1&y=%20", {
      method: "PATCH",
      body: "some text",
      headers: { "x-own": "yes", "content-type": "text/plain" },
    });
    assert.equal(response.status, 200);
    assert.deepEqual(response.headers.getSetCookie(), ["a=1", "b=2"]);
    const { method, url, headers, body } = (await response.json()) as Mirrored;
    assert.deepEqual([method, url, body], ["PATCH", "/api/a%2Fb/c%20d?x=1&y=%20", "some text"]);
    assert.equal(headers["x-own"], "yes");
    assert.equal(headers["content-length"], "9");
    assert.equal(headers.host, new URL(behind.url).host);
    assert.equal(headers["x-forwarded-for"], "127.0.0.1");
    assert.equal(headers["x-forwarded-proto"], "http");
    assert.equal(headers["x-forwarded-host"], new URL(running.url("")).host);
  });

  test("drops headers of a single connection in both directions", async () => {
    let seen: IncomingMessage["headers"] = {};
    await using behind = await upstream((incoming, response) => {
      seen = incoming.headers;
      response.writeHead(200, {
        connection: "x-between",
        "x-between": "1",
        "proxy-authenticate": "Basic",
        "x-kept": "1",
      });
      response.end("ok");
    });
    await using running = await start(behind.url);
    const head =
      "Host: localhost\r\nConnection: close, X-Hop\r\nX-Hop: 1\r\nTE: trailers\r\nUpgrade: x\r\nX-Stays: 1\r\n";
    const received = await rawExchange(Number(new URL(running.url("")).port), `GET /proxy/ HTTP/1.1\r\n${head}\r\n`);
    assert.deepEqual([seen["x-hop"], seen.te, seen.upgrade, seen["x-stays"]], [undefined, undefined, undefined, "1"]);
    assert.match(received, /^HTTP\/1\.1 200/);
    assert.match(received, /x-kept: 1/i);
    assert.doesNotMatch(received, /x-between|proxy-authenticate/i);
  });

  test("streams both ways: the response begins before the request has ended", async () => {
    await using behind = await upstream((incoming, response) => incoming.pipe(response));
    await using running = await start(behind.url);
    const sending = request(running.url("/proxy/echo"), { method: "POST" });
    sending.write("one ");
    const [received] = (await once(sending, "response")) as [IncomingMessage];
    const [first] = (await once(received, "data")) as [Buffer];
    assert.equal(first.toString(), "one ");
    sending.end("two");
    assert.equal(await text(received), "two");
  });

  test("responds to HEAD with the length of the content", async () => {
    await using behind = await upstream((incoming, response) =>
      response.end(incoming.method === "HEAD" ? "" : "five!"),
    );
    await using running = await start(behind.url);
    const received = await running.fetch("/proxy/", { method: "HEAD" });
    assert.equal(received.status, 200);
    assert.equal(await (await running.fetch("/proxy/")).text(), "five!");
  });

  test("a client that disconnects ends the request to the upstream server", async () => {
    const arrived = Promise.withResolvers<IncomingMessage>();
    await using behind = await upstream((incoming) => arrived.resolve(incoming));
    await using running = await start(behind.url);
    const leaving = new AbortController();
    const pending = running.fetch("/proxy/slow", { signal: leaving.signal });
    const closed = once((await arrived.promise).socket, "close");
    leaving.abort();
    await assert.rejects(pending, { name: "AbortError" });
    await closed;
  });

  test("responds with 502 if nobody listens or the response is not HTTP, and with 504 if no response arrives", async () => {
    const free = await upstream(() => undefined);
    await free[Symbol.asyncDispose]();
    await using refused = await start(free.url);
    assert.equal((await refused.fetch("/proxy/")).status, 502);
    assert.match(refused.log().join(""), /Nothing listens at/);

    const garbage = createRawServer((socket) => socket.end("no http\r\n\r\n")).listen(0, "127.0.0.1");
    await once(garbage, "listening");
    await using confused = await start(`http://127.0.0.1:${(garbage.address() as AddressInfo).port}`);
    assert.equal((await confused.fetch("/proxy/")).status, 502);
    garbage.close();

    await using silent = await upstream(() => undefined);
    await using waiting = await start(silent.url, { proxy_timeout: 0.1 });
    const late = await waiting.fetch("/proxy/");
    assert.equal(late.status, 504);
    assert.doesNotMatch(
      await late.text(),
      new RegExp(new URL(silent.url).port),
      "the client does not learn the address",
    );
  });

  test("cuts the response off if the upstream server does", async () => {
    await using behind = await upstream((_request, response) => {
      response.writeHead(200, { "content-length": 100 });
      response.write("some", () => response.destroy());
    });
    await using running = await start(behind.url);
    await assert.rejects((await running.fetch("/proxy/")).text());
  });

  test("does not leave the path of the upstream server", async () => {
    const seen: string[] = [];
    await using behind = await upstream((incoming, response) => response.end(String(seen.push(incoming.url ?? ""))));
    await using running = await start(`${behind.url}/public/`);
    const port = Number(new URL(running.url("")).port);
    for (const path of ["/proxy/../secret", "/proxy/%2e%2e/secret", "/proxy/a/../../secret"]) {
      const received = await rawExchange(port, `GET ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`);
      assert.match(received, /^HTTP\/1\.1 40[04]/, path);
    }
    assert.deepEqual(seen, []);
  });

  test("fails to load without an address, and names the missing option", async () => {
    await assert.rejects(createTestHost({ modules: [exampleFile("proxy")] }), /proxy: .*proxy_upstream is not set/);
  });
});

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type IncomingMessage, type RequestListener, request } from "node:http";
import { type AddressInfo, createServer as createRawServer } from "node:net";
import { text } from "node:stream/consumers";
import { describe, test } from "node:test";
import { createTestHost } from "#core/testing/index.ts";
import { rawExchange } from "#test/support/raw.ts";
import { exampleFile } from "./support.ts";

/** A server to stand behind the proxy. */
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

/** Answers with what it was asked. */
const mirror: RequestListener = (asked, answer) => {
  const chunks: Buffer[] = [];
  asked.on("data", (chunk: Buffer) => chunks.push(chunk));
  asked.on("end", () => {
    answer.setHeader("content-type", "application/json");
    answer.setHeader("set-cookie", ["a=1", "b=2"]);
    const { method, url, headers } = asked;
    answer.end(JSON.stringify({ method, url, headers, body: Buffer.concat(chunks).toString() }));
  });
};

interface Mirrored {
  readonly method: string;
  readonly url: string;
  readonly headers: Record<string, string>;
  readonly body: string;
}

describe("the example mod_proxy", () => {
  test("passes method, path, query, headers and body on, and the answer back", async () => {
    await using behind = await upstream(mirror);
    await using running = await start(`${behind.url}/api`);
    const answer = await running.fetch("/proxy/a%2Fb/c%20d?x=1&y=%20", {
      method: "PATCH",
      body: "some text",
      headers: { "x-own": "yes", "content-type": "text/plain" },
    });
    assert.equal(answer.status, 200);
    assert.deepEqual(answer.headers.getSetCookie(), ["a=1", "b=2"]);
    const { method, url, headers, body } = (await answer.json()) as Mirrored;
    assert.deepEqual([method, url, body], ["PATCH", "/api/a%2Fb/c%20d?x=1&y=%20", "some text"]);
    assert.equal(headers["x-own"], "yes");
    assert.equal(headers["content-length"], "9");
    assert.equal(headers.host, new URL(behind.url).host);
    assert.equal(headers["x-forwarded-for"], "127.0.0.1");
    assert.equal(headers["x-forwarded-proto"], "http");
    assert.equal(headers["x-forwarded-host"], new URL(running.url("")).host);
  });

  test("drops what speaks of one connection only, in both directions", async () => {
    let seen: IncomingMessage["headers"] = {};
    await using behind = await upstream((asked, answer) => {
      seen = asked.headers;
      answer.writeHead(200, {
        connection: "x-between",
        "x-between": "1",
        "proxy-authenticate": "Basic",
        "x-kept": "1",
      });
      answer.end("ok");
    });
    await using running = await start(behind.url);
    const head =
      "Host: localhost\r\nConnection: close, X-Hop\r\nX-Hop: 1\r\nTE: trailers\r\nUpgrade: x\r\nX-Stays: 1\r\n";
    const answer = await rawExchange(Number(new URL(running.url("")).port), `GET /proxy/ HTTP/1.1\r\n${head}\r\n`);
    assert.deepEqual([seen["x-hop"], seen.te, seen.upgrade, seen["x-stays"]], [undefined, undefined, undefined, "1"]);
    assert.match(answer, /^HTTP\/1\.1 200/);
    assert.match(answer, /x-kept: 1/i);
    assert.doesNotMatch(answer, /x-between|proxy-authenticate/i);
  });

  test("streams both ways: the answer begins before the request has ended", async () => {
    await using behind = await upstream((asked, answer) => asked.pipe(answer));
    await using running = await start(behind.url);
    const sending = request(running.url("/proxy/echo"), { method: "POST" });
    sending.write("one ");
    const [answer] = (await once(sending, "response")) as [IncomingMessage];
    const [first] = (await once(answer, "data")) as [Buffer];
    assert.equal(first.toString(), "one ");
    sending.end("two");
    assert.equal(await text(answer), "two");
  });

  test("answers HEAD with the length of what it is about", async () => {
    await using behind = await upstream((asked, answer) => answer.end(asked.method === "HEAD" ? "" : "five!"));
    await using running = await start(behind.url);
    const answer = await running.fetch("/proxy/", { method: "HEAD" });
    assert.equal(answer.status, 200);
    assert.equal(await (await running.fetch("/proxy/")).text(), "five!");
  });

  test("a client that leaves ends the request behind", async () => {
    const arrived = Promise.withResolvers<IncomingMessage>();
    await using behind = await upstream((asked) => arrived.resolve(asked));
    await using running = await start(behind.url);
    const leaving = new AbortController();
    const answer = running.fetch("/proxy/slow", { signal: leaving.signal });
    const closed = once((await arrived.promise).socket, "close");
    leaving.abort();
    await assert.rejects(answer, { name: "AbortError" });
    await closed;
  });

  test("answers 502 when nobody listens or what comes is no HTTP, 504 when nothing comes", async () => {
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
    assert.doesNotMatch(await late.text(), new RegExp(new URL(silent.url).port), "the client is not told the address");
  });

  test("cuts the answer off when the server behind does", async () => {
    await using behind = await upstream((_asked, answer) => {
      answer.writeHead(200, { "content-length": 100 });
      answer.write("some", () => answer.destroy());
    });
    await using running = await start(behind.url);
    await assert.rejects((await running.fetch("/proxy/")).text());
  });

  test("does not leave the upstream's path", async () => {
    const seen: string[] = [];
    await using behind = await upstream((asked, answer) => answer.end(String(seen.push(asked.url ?? ""))));
    await using running = await start(`${behind.url}/public/`);
    const port = Number(new URL(running.url("")).port);
    for (const path of ["/proxy/../secret", "/proxy/%2e%2e/secret", "/proxy/a/../../secret"]) {
      const answer = await rawExchange(port, `GET ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`);
      assert.match(answer, /^HTTP\/1\.1 40[04]/, path);
    }
    assert.deepEqual(seen, []);
  });

  test("fails to load without an address, and says which option is missing", async () => {
    await assert.rejects(createTestHost({ modules: [exampleFile("proxy")] }), /proxy: .*proxy_upstream is not set/);
  });
});

/** Websockets through the proxy. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { describe, test } from "node:test";
import { WebSocketServer } from "ws";
import { eventually } from "#test/support/eventually.ts";
import { RawConnection } from "#test/support/raw.ts";
import { handshake, handshakeStatus, SocketClient } from "#test/support/websocket.ts";
import { reconfigured } from "#test/unit/core/operations/reconfigured.ts";
import { proxied, upstream } from "./proxied.ts";

/** Starts an upstream that sends the header of the request, and then echoes all messages. */
async function echoing() {
  const server = await upstream();
  const sockets = new WebSocketServer({ noServer: true, perMessageDeflate: true });
  const closed: number[] = [];
  server.server.on("upgrade", (request, socket, head) => {
    server.seen.push(`${request.url} ${request.headers.origin} ${request.headers["x-forwarded-for"]}`);
    if (request.url === "/no") socket.end("HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\nX-Why: not\r\n\r\nno");
    else
      sockets.handleUpgrade(request, socket, head, (ws) => {
        ws.send("welcome");
        ws.on("message", (data, isBinary) => ws.send(data, { binary: isBinary }));
        ws.on("close", (code) => closed.push(code));
      });
  });
  return { ...server, sockets, closed };
}

describe("a proxied websocket", () => {
  test("carries messages of any size in both directions, and closes at both ends", async () => {
    await using server = await echoing();
    await using host = await proxied({ app: { upstreams: [server.url] } });
    for (const port of [`http://127.0.0.1:${host.http}`, `https://127.0.0.1:${host.https}`]) {
      using client = await SocketClient.open(`${port}/app/ws?a=1`, { headers: { origin: "https://elsewhere.test" } });
      assert.equal(await client.next(), "welcome");
      const large = Buffer.alloc(3 * 1024 * 1024, "x");
      client.send(large);
      assert.deepEqual(await client.next(), large);
      assert.equal(server.seen.at(-1), "/ws?a=1 https://elsewhere.test 127.0.0.1");
      assert.deepEqual(await client.close(4001, "enough"), { code: 4001, reason: "enough" });
    }
    await eventually("the server has heard of both ends", () => server.closed.length >= 2);
    assert.deepEqual(server.closed, [4001, 4001]);

    using left = await SocketClient.open(`http://127.0.0.1:${host.http}/app/ws`);
    await left.next();
    for (const socket of server.sockets.clients) socket.close(1012, "moved");
    assert.deepEqual(await left.closed, { code: 1012, reason: "moved" });
    using lost = await SocketClient.open(`http://127.0.0.1:${host.http}/app/ws`);
    await lost.next();
    for (const socket of server.sockets.clients) socket.terminate();
    assert.equal((await lost.closed).code, 1006);
  });

  test("is refused with the upstream's response, or if there is no upstream", async () => {
    await using server = await echoing();
    await using gone = await upstream();
    await using host = await proxied({ app: { upstreams: [server.url] }, gone: { upstreams: [gone.url] } });
    await gone.stop();
    const url = `http://127.0.0.1:${host.http}`;
    using raw = await RawConnection.open(host.http);
    raw.write(handshake("/app/no"));
    await raw.until(/^HTTP\/1\.1 403 .*X-Why: not.*\r\n\r\nno$/s);
    assert.equal(await handshakeStatus(`${url}/gone/ws`), 502);
  });

  test("gets 502 when the upstream switches to another protocol, and a 101 without Content-Length otherwise", async () => {
    await using server = await upstream();
    server.server.on("upgrade", ({ url }, socket) => {
      const protocol = url === "/other" ? "foo" : "WebSocket";
      const accept = "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";
      socket.end(
        `HTTP/1.1 101 Go\r\nConnection: Upgrade\r\nUpgrade: ${protocol}\r\nContent-Length: 9\r\n${accept}\r\n\r\n`,
      );
    });
    await using host = await proxied({ app: { upstreams: [server.url] } });
    assert.equal(await handshakeStatus(`http://127.0.0.1:${host.http}/app/other`), 502);
    using raw = await RawConnection.open(host.http);
    raw.write(handshake("/app/ws"));
    await raw.until(/\r\n\r\n/);
    assert.match(raw.text, /^HTTP\/1\.1 101 /);
    assert.doesNotMatch(raw.text, /content-length/i);
  });

  test("is ended when nothing moves on it for too long, and not before", async () => {
    await using server = await echoing();
    await using host = await proxied({ app: { upstreams: [server.url], idle_timeout: 1 } });
    // On a busy machine the pause between two messages may exceed the timeout. Then the test begins
    // again.
    for (let isShown = false; !isShown; ) {
      using client = await SocketClient.open(`http://127.0.0.1:${host.http}/app/ws`);
      const began = performance.now();
      let last = began;
      let longest = 0;
      let hasResponded = true;
      while (hasResponded && last - began < 1500) {
        client.send("a");
        hasResponded = await client.next().then(
          () => true,
          () => false,
        );
        const now = performance.now();
        longest = Math.max(longest, now - last);
        last = now;
      }
      isShown = longest < 900;
      if (isShown) assert.equal(client.ws.readyState, client.ws.OPEN);
      assert.equal((await client.closed).code, 1006);
    }
  });

  test("counts for its upstream, and stays open when the configuration changes", async () => {
    await using server = await echoing();
    await using other = await echoing();
    const set = (url: string, apps = {}) => ({
      modules_enabled: ["http", "http_proxy", "http_openmetrics"],
      http_proxy: { app: { upstreams: [url], max_connections: 1 }, ...apps },
    });
    await using host = await reconfigured(set(server.url));
    const url = `http://127.0.0.1:${host.port()}/app/ws`;
    using client = await SocketClient.open(url);
    await client.next();
    const metrics = await (await fetch(`http://127.0.0.1:${host.port()}/metrics`)).text();
    const labels = `app="app",upstream="${server.url}"`;
    assert.ok(metrics.includes(`modhost_http_proxy_in_flight{${labels}} 1\n`));
    assert.ok(metrics.includes(`modhost_http_proxy_requests_total{${labels},class="1xx"} 1\n`));
    assert.equal(await handshakeStatus(url), 503);
    await host.apply(set(other.url));
    using next = await SocketClient.open(url);
    await next.next();
    client.send("still there?");
    assert.equal(await client.next(), "still there?");
    assert.deepEqual([server.sockets.clients.size, other.sockets.clients.size], [1, 1]);
    // Websockets end with their app.
    await host.apply({ ...set(other.url), http_proxy: {} });
    await Promise.all([client.closed, next.closed]);
    assert.equal(await handshakeStatus(url), 404);
  });
});

test("bytes that a client sends before its websocket is open reach the upstream", async () => {
  await using server = await upstream();
  server.server.on("upgrade", (_, socket, head: Buffer) => {
    socket.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nfirst ");
    socket.write(head);
    socket.on("data", (piece) => socket.write(piece)).on("end", () => socket.end());
  });
  await using host = await proxied({ app: { upstreams: [server.url] } });
  using raw = await RawConnection.open(host.http);
  raw.write(`${handshake("/app/ws")}early `);
  await raw.until(/\r\n\r\nfirst early $/);
  raw.write("late");
  await raw.until(/late$/);
  raw.socket.end();
  await once(raw.socket, "close");
});

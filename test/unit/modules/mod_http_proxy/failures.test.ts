/** Failing upstreams: the responses of clients, retries, and pauses of upstreams. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { eventually } from "#test/support/eventually.ts";
import { RawConnection } from "#test/support/raw.ts";
import { proxied, track, upstream } from "./proxied.ts";

/** Starts a server that responds with bytes to anything. */
async function byteServer(respond: (socket: Socket) => void) {
  const server = createServer((socket) => {
    socket.once("data", () => respond(socket));
  });
  const sockets = track(server);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const stop = async () => {
    for (const socket of sockets) socket.destroy();
    server.close();
  };
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, [Symbol.asyncDispose]: stop };
}

/** Returns a URL at which nobody listens. */
async function nowhere(): Promise<string> {
  await using server = await upstream();
  return server.url;
}

const until = (isSo: () => boolean | Promise<boolean>) => eventually(String(isSo), isSo);

describe("clients get", () => {
  test("502 when the upstream is unreachable, lost or sends no HTTP, and the page does not mention the upstream", async () => {
    await using lost = await byteServer((socket) => socket.destroy());
    await using babble = await byteServer((socket) => socket.end("SSH-2.0-x\r\n\r\n"));
    await using both = await byteServer((socket) =>
      socket.end("HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    );
    await using wild = await byteServer((socket) =>
      socket.end("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n"),
    );
    await using odd = await byteServer((socket) => socket.end("HTTP/1.1 999 Odd\r\nContent-Length: 0\r\n\r\n"));
    const away = await nowhere();
    const urls = { odd: odd.url, away, lost: lost.url, babble: babble.url, both: both.url, wild: wild.url };
    const entries = Object.entries(urls).map(([name, url]) => [name, { upstreams: [url] }]);
    await using host = await proxied(Object.fromEntries(entries));
    for (const [name, url] of Object.entries(urls)) {
      const reply = await host.client("HTTP/1.1").request(`/${name}/a`);
      assert.deepEqual([reply.status, reply.text], [502, "502 Bad Gateway\n"], name);
      assert.ok(host.log().includes(`${name}: the upstream ${url} failed GET /${name}/a`), name);
    }
    assert.doesNotMatch(host.log(), /"level":"error"/);
  });

  test("as much of a response as can be sent when its head has invalid parts, without an error in the log", async () => {
    const follow = "Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nTE: x\r\nX-Sum: 1\r\n\r\n";
    const heads = {
      phrase: "200 O\u0001K\r\nContent-Length: 2\r\n\r\nok",
      trailers: `200 OK\r\nTrailer: a b, :status, Content-Length, Connection, X-Sum\r\n${follow}`,
      reset: "205 Reset Content\r\nContent-Length: 2\r\n\r\nok",
    };
    for (const [name, head] of Object.entries(heads)) {
      await using odd = await byteServer((socket) => socket.end(`HTTP/1.1 ${head}`));
      await using host = await proxied({ app: { upstreams: [odd.url] } });
      for (const by of ["HTTP/1.1", "HTTP/2"] as const) {
        const { status, text, trailers } = await host.client(by).request("/app");
        assert.deepEqual([status, text], name === "reset" ? [205, ""] : [200, "ok"], `${name} ${by}`);
        if (name === "trailers") assert.deepEqual(Object.entries(trailers), [["x-sum", "1"]]);
      }
      assert.doesNotMatch(host.log(), /"level":"error"/, name);
    }
  });

  test("504 when connecting, the response or reading the request takes too long", async () => {
    await using silent = await byteServer(() => undefined);
    await using host = await proxied({
      late: { upstreams: [silent.url], response_timeout: 0.1 },
      // An address for documentation: nothing responds, or the network reports it as unreachable.
      far: { upstreams: ["http://192.0.2.1:9"], connect_timeout: 0.1 },
    });
    assert.equal(await host.client("HTTP/1.1").status("/late"), 504);
    assert.ok([502, 504].includes(await host.client("HTTP/1.1").status("/far")));
    assert.match(host.log(), /its response took too long/);
  });

  test("a closed connection when a response stalls for too long", async () => {
    await using stuck = await byteServer((socket) => socket.write("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc"));
    await using host = await proxied({ app: { upstreams: [stuck.url], idle_timeout: 0.1 } });
    await assert.rejects(host.client("HTTP/1.1").request("/app"));
    await until(() => host.log().includes("it stopped sending its response"));
  });

  test("the response even if it takes longer than keep_alive", async () => {
    await using slow = await upstream((request, response) => {
      request.resume();
      setTimeout(() => response.end("late"), request.url === "/now" ? 0 : 250);
    });
    await using host = await proxied({ app: { upstreams: [slow.url], keep_alive: 0.1, retries: 0 } });
    const ask = async (method: string, path: string, body?: string) =>
      (await host.client("HTTP/1.1").request({ method, path, ...(body === undefined ? {} : { body }) })).text;
    // This request leaves an idle connection for a later one.
    await ask("GET", "/app/now");
    const all = [ask("GET", "/app/"), ask("POST", "/app/", "x"), ask("POST", "/app/"), ask("PUT", "/app/", "x")];
    assert.deepEqual(await Promise.all(all), ["late", "late", "late", "late"]);
    assert.equal(slow.seen.length, 5, "and nothing is sent twice");
  });

  test("a broken connection when a response stops after the client itself was slow", async () => {
    await using stuck = await upstream((_, response) => {
      response.writeHead(200, { "Content-Length": 2 ** 25 }).write(Buffer.alloc(2 ** 24));
    });
    await using host = await proxied({ app: { upstreams: [stuck.url], idle_timeout: 0.1 } });
    using client = await RawConnection.open(host.http, { timeout: 10_000 });
    client.write("GET /app HTTP/1.1\r\nHost: a\r\n\r\n");
    await client.until(/HTTP\/1.1 200/);
    client.socket.pause();
    await sleep(300);
    assert.doesNotMatch(host.log(), /it stopped sending/, "it is the client that does not go on");
    client.socket.resume();
    await client.end();
    await until(() => host.log().includes("it stopped sending its response"));
  });

  test("503 with Retry-After when no upstream is available", async () => {
    await using server = await upstream((_, response) => void response);
    await using host = await proxied({
      busy: { upstreams: [server.url], max_connections: 1 },
      ill: { upstreams: [await nowhere()], health_path: "/", health_interval: 7, unhealthy_after: 1 },
    });
    const first = host.client("HTTPS/1.1").request("/busy");
    first.catch(() => undefined);
    await until(() => server.seen.length === 1);
    const busy = await host.client("HTTP/1.1").request("/busy");
    assert.deepEqual([busy.status, busy.header("retry-after")], [503, "1"]);
    await until(() => host.log().includes("is unhealthy"));
    const ill = await host.client("HTTP/1.1").request("/ill");
    assert.deepEqual([ill.status, ill.header("retry-after")], [503, "7"]);
    assert.match(host.log(), /ill: no upstream for GET \/ill .* none is healthy/);
    await server.stop();
  });
});

describe("a request is retried", () => {
  test("at the next upstream if that is safe, and only as often as the option allows", async () => {
    await using lost = await byteServer((socket) => socket.destroy());
    await using well = await upstream((_, response) => response.end("well"));
    const away = await nowhere();
    await using host = await proxied({
      lost: { upstreams: [lost.url, well.url], balance: "first", fail_after: 0 },
      away: { upstreams: [away, well.url], balance: "first", fail_after: 0 },
      once: { upstreams: [lost.url, away, well.url], balance: "first", fail_after: 0 },
      twice: { upstreams: [lost.url, away, well.url], balance: "first", fail_after: 0, retries: 2 },
      never: { upstreams: [away, well.url], balance: "first", fail_after: 0, retries: 0 },
    });
    const client = host.client("HTTP/1.1");
    const ask = async (path: string, method = "GET", body?: string) =>
      (await client.request({ path, method, ...(body === undefined ? {} : { body }) })).status;
    assert.equal(await ask("/lost"), 200);
    assert.equal(await ask("/lost", "POST"), 502, "the server may have done it before it was lost");
    assert.equal(await ask("/lost", "PUT", "x"), 502, "the body is gone");
    assert.equal(await ask("/away", "POST", "x"), 200, "nothing was sent");
    assert.deepEqual([await ask("/once"), await ask("/twice"), await ask("/never")], [502, 200, 502]);
  });

  test("on a new connection when an idle one was closed, which does not count as a failure", async () => {
    let requests = 0;
    await using server = await byteServer((socket) => {
      requests += 1;
      socket.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
      // The next request on this connection gets no response.
      socket.once("data", () => socket.destroy());
    });
    await using host = await proxied({ app: { upstreams: [server.url], retries: 0 } });
    for (let at = 0; at < 3; at += 1) assert.equal(await host.client("HTTP/1.1").text("/app"), "ok");
    assert.equal(requests, 3);
    assert.doesNotMatch(host.log(), /failed GET/);
  });
});

describe("an upstream gets no requests", () => {
  test("for a time after it has failed some, unless it is the only one", async () => {
    await using well = await upstream((_, response) => response.end("well"));
    const away = await nowhere();
    const both = { upstreams: [away, well.url], balance: "first", fail_after: 2, fail_time: 3600 };
    await using host = await proxied({ both, only: { ...both, upstreams: [away] } });
    const client = host.client("HTTP/1.1");
    const failures = () => host.log().match(/both: the upstream \S+ failed/g)?.length;
    for (let at = 0; at < 5; at += 1) assert.equal(await client.status("/both"), 200);
    assert.equal(failures(), 2);
    assert.match(host.log(), /gets no requests for 3600 s, after 2 failures/);
    for (let at = 0; at < 3; at += 1) assert.equal(await client.status("/only"), 502);
  });

  test("while it fails health checks, and gets them again when it passes", async () => {
    let status = 500;
    await using one = await upstream((request, response) => {
      if (request.url === "/base/health?x") response.statusCode = status;
      response.end("one");
    });
    await using other = await upstream((_, response) => response.end("other"));
    const health = { health_path: "/health?x", health_interval: 0.02, healthy_after: 2, unhealthy_after: 3 };
    const upstreams = [`${one.url}/base`, other.url];
    await using host = await proxied({ app: { upstreams, balance: "first", health_status: "200, 204", ...health } });
    const client = host.client("HTTP/1.1");
    await until(async () => (await client.text("/app")) === "other");
    assert.match(host.log(), /is unhealthy: its response was 500/);
    assert.match(
      host.host.modules().find(({ name }) => name === "http_proxy")?.note ?? "",
      /app: 1 of 2 upstreams healthy/,
    );
    status = 200;
    await until(async () => (await client.text("/app")) === "one");
    assert.match(host.log(), /is healthy again/);
  });
});

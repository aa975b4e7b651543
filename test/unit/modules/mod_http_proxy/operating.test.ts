/**
 * The proxy as its operator sees it: options, hosts, changes while it runs, metrics and the Admin
 * API.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { createServer as createSecure } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { makeSelfSigned } from "#core/tls/self_signed.ts";
import { eventually } from "#test/support/eventually.ts";
import { reconfigured } from "#test/unit/core/operations/reconfigured.ts";
import { adminHost } from "#test/unit/modules/mod_http_admin/support.ts";
import { proxied, upstream } from "./proxied.ts";

/** Starts an upstream that responds with its name. */
const named = (name: string) => upstream((_, response) => void response.end(name));

async function balanced(balance: string, addresses: readonly string[]) {
  await using a = await named("a");
  await using b = await named("b");
  await using c = await named("c");
  await using host = await proxied({ app: { upstreams: [a.url, b.url, c.url], balance } });
  const texts: string[] = [];
  for (const address of addresses) {
    const headers = { "x-forwarded-for": address };
    texts.push((await host.client("HTTP/1.1").request({ path: "/app", headers })).text);
  }
  return texts.join("");
}

describe("requests go to", () => {
  test("one upstream after the other, the first, or the same one for the same client", async () => {
    const same = new Array<string>(6).fill("10.0.0.1");
    const others = Array.from({ length: 40 }, (_, at) => `10.0.1.${at}`);
    assert.equal(await balanced("round_robin", same), "abcabc");
    assert.equal(await balanced("first", same), "aaaaaa");
    assert.match(await balanced("client_address", same), /^(.)\1{5}$/);
    const spread = await balanced("client_address", others);
    for (const name of "abc") assert.ok(spread.includes(name), `${name} has none of ${spread}`);
  });

  test("the upstream with the fewest requests in progress", async () => {
    await using slow = await upstream(() => undefined);
    await using quick = await named("quick");
    await using host = await proxied({ app: { upstreams: [slow.url, quick.url], balance: "least_connections" } });
    const stuck = host.client("HTTPS/1.1").request("/app");
    stuck.catch(() => undefined);
    while (slow.seen.length === 0) await once(slow.server, "request");
    for (let at = 0; at < 4; at += 1) assert.equal(await host.client("HTTP/1.1").text("/app"), "quick");
    await slow.stop();
  });

  test("a Unix socket, and over TLS only to a server with the certificate of the upstream", async () => {
    const folder = await mkdtemp(join(tmpdir(), "modhost-proxy-"));
    const { certificate, key } = await makeSelfSigned(["inner.test"]);
    const ca = join(folder, "ca.pem");
    await writeFile(ca, certificate);
    const path = join(folder, "app.sock");
    const plain = createServer((request, response) => response.end(`socket ${request.headers.host}`)).listen(path);
    const secure = createSecure({ cert: certificate, key }, (_, response) => response.end("secret"));
    secure.listen(0, "127.0.0.1");
    await Promise.all([once(plain, "listening"), once(secure, "listening")]);
    const upstreams = [`https://127.0.0.1:${(secure.address() as AddressInfo).port}`];
    try {
      await using host = await proxied({
        unix: { upstreams: [`unix:${path}`], host: "upstream" },
        known: { upstreams, tls_ca: ca, tls_server_name: "inner.test" },
        misnamed: { upstreams, tls_ca: ca },
        unknown: { upstreams, tls_server_name: "inner.test" },
        insecure: { upstreams, tls_insecure: true },
      });
      const client = host.client("HTTP/1.1");
      assert.equal(await client.text("/unix"), "socket localhost");
      assert.deepEqual([await client.text("/known"), await client.text("/known")], ["secret", "secret"]);
      assert.equal(await client.text("/insecure"), "secret");
      assert.deepEqual([await client.status("/misnamed"), await client.status("/unknown")], [502, 502]);
      assert.match(host.log(), /unknown: the upstream .*self-signed certificate/);
      assert.match(host.log(), /"level":"warn".*INSECURE: takes any certificate for insecure/);
    } finally {
      plain.close();
      secure.close();
      secure.closeAllConnections();
      await rm(folder, { recursive: true });
    }
  });
});

test("a wrong option prevents the start, and the error explains it", async () => {
  const wrong = [
    [{}, /http_proxy\.app\.upstreams is not set/],
    [{ upstreams: [] }, /upstreams .*at least one/],
    [
      { upstreams: ["ftp://a:hidden@b.test"] },
      /upstreams is "ftp:\/\/\*\*\*@b\.test", but a URL may contain no password/,
    ],
    [{ upstreams: ["ftp://a"] }, /upstreams .*http:\/\/127\.0\.0\.1:3000/],
    [{ upstreams: ["http://a/?b"] }, /neither query/],
    [{ upstreams: ["http://a"], path: "away" }, /path .*strip, keep/],
    [{ upstreams: ["http://a"], balance: "best" }, /balance .*round_robin/],
    [{ upstreams: ["http://a"], health_status: "2xx" }, /health_status .*200-299/],
    [{ upstreams: ["http://a"], request_headers: { Host: "b" } }, /request_headers\.Host .*writes this header itself/],
    [{ upstreams: ["http://a"], response_headers: { "X A": "b" } }, /X A .*name of a header/],
    [{ upstreams: ["http://a"], tls_ca: "/nowhere.pem" }, /tls_ca .*cannot be read/],
    [{ upstreams: ["http://a"], upstream: "b" }, /http_proxy\.app\.upstream .*the fields are upstreams/],
  ] as const;
  for (const [entry, message] of wrong) await assert.rejects(proxied({ app: entry }), message, String(message));
  await assert.rejects(proxied({ app: { upstreams: ["http://u:pass@a"] } }), (error: Error) => {
    assert.doesNotMatch(error.message, /pass@/);
    return true;
  });
});

describe("a change of the configuration", () => {
  test("sends new requests to the new upstreams, and lets requests in progress end", async () => {
    let finish: (() => void) | undefined;
    await using previous = await upstream((_, response) => {
      response.write("begun ");
      finish = () => void response.end("ended");
    });
    await using next = await named("next");
    const set = (apps: Record<string, unknown>) => ({ modules_enabled: ["http", "http_proxy"], http_proxy: apps });
    await using host = await reconfigured(set({ app: { upstreams: [previous.url] } }));
    const running = host.get("/app");
    while (previous.seen.length === 0) await once(previous.server, "request");
    const plan = await host.apply(set({ app: { upstreams: [next.url] }, more: { upstreams: [next.url] } }));
    assert.deepEqual(
      plan.modules.map(({ action, module }) => `${action} ${module}`),
      ["tell http_proxy"],
    );
    assert.deepEqual([await host.get("/app"), await host.get("/more")], ["next", "next"]);
    finish?.();
    assert.equal(await running, "begun ended");
    await eventually("the connections to the former are closed", () => previous.sockets.size === 0);
    await assert.rejects(host.apply(set({ app: { upstreams: ["none"] } })), /http_proxy\.app\.upstreams/);
    assert.equal(await host.get("/app"), "next", "what is refused changes nothing");
    await host.apply(set({ more: { upstreams: [next.url] } }));
    assert.match(await host.get("/app"), /404/);
    assert.doesNotMatch(host.log(), /names its app/);
  });

  test("affects only the virtual host whose options change", async () => {
    await using all = await named("all");
    await using own = await named("own");
    const app = (url: string) => ({ app: { upstreams: [url] } });
    const set = (b: unknown) => ({
      modules_enabled: ["http", "http_proxy"],
      http_proxy: app(all.url),
      hosts: { "a.test": {}, "b.test": { http_proxy: b } },
    });
    await using host = await reconfigured(set(app(own.url)));
    const ask = () => Promise.all(["a.test", "b.test"].map((name) => host.get("/app", { host: name })));
    assert.deepEqual(await ask(), ["all", "own"]);
    await host.apply(set(app(all.url)));
    assert.deepEqual(await ask(), ["all", "all"]);
    await host.apply(set({}));
    const [first, second] = await ask();
    assert.equal(first, "all");
    assert.match(String(second), /404/);
  });
});

test("the Admin API shows and drains upstreams, which stay drained after a reload, and metrics count requests", async (t) => {
  await using a = await named("a");
  await using b = await named("b");
  const running = await adminHost(t, {
    config: {
      modules_enabled: ["http_admin", "http_proxy", "http_openmetrics"],
      http_proxy: { app: { upstreams: [a.url, b.url] } },
    },
  });
  const ask = async (path = "/app") => (await running.inject(path)).body;
  const states = async () => {
    const { value } = await running.call<{ state: string }[]>("GET", "/http_proxy/upstreams");
    return value.map(({ state }) => state);
  };
  assert.deepEqual([await ask(), await ask()], ["a", "b"]);
  const drained = await running.call("POST", "/http_proxy/drain", { app: "app", upstream: a.url });
  assert.deepEqual([drained.status, drained.value.state, drained.value.requests], [200, "drained", 1]);
  assert.deepEqual([await ask(), await ask()], ["b", "b"]);
  assert.deepEqual(await states(), ["drained", "healthy"]);
  await running.host.reload("http_proxy");
  assert.deepEqual(await states(), ["drained", "healthy"]);
  assert.equal((await running.call("POST", "/http_proxy/undrain", { app: "app", upstream: a.url })).status, 200);
  assert.deepEqual(await states(), ["healthy", "healthy"]);
  const missing = await running.call("POST", "/http_proxy/drain", { app: "app", upstream: "http://c" });
  assert.equal(missing.status, 404);
  await ask();
  const text = await ask("/metrics");
  assert.match(text, /modhost_http_proxy_requests_total\{app="app",upstream="http:[^"]*",class="2xx"\} 1\n/);
  assert.match(text, /modhost_http_proxy_healthy\{app="app",upstream="[^"]*"\} 1\n/);
  const audit = await running.call("GET", "/audit");
  assert.match(JSON.stringify(audit.value), /drain the upstream http:.* of app/);
});

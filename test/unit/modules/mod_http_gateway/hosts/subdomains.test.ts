import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { base58btc } from "multiformats/bases/base58";
import { CID } from "multiformats/cid";
import type { Module } from "#core/types.ts";
import { readGatewaySpecs } from "#modules/mod_http_gateway/hosts/gateway_specs.ts";
import { createNode } from "#node/index.ts";
import { startHost, type TestHost } from "#test/support/host.ts";
import { overEach } from "#test/support/transports.ts";
import { askAt } from "../support.ts";

describe("hosts of the gateway next to the apps of a server", () => {
  let host: TestHost;
  let site = "";
  let long = "";
  const ask = (authority: string, path: string, headers: Record<string, string> = {}, method = "GET") =>
    askAt(host.http, path, { host: authority, ...headers }, method);
  const location = async (authority: string, path: string, headers = {}) => {
    const { status, headers: responseHeaders } = await ask(authority, path, headers);
    return [status, responseHeaders.location];
  };

  before(async () => {
    const { IPFS_NS_MAP: outside } = process.env;
    host = await startHost({
      async prepare(folder) {
        await using node = await createNode({ repo: join(folder, "data", "repo"), offline: true });
        const files = [
          { path: "site/index.html", content: "home" },
          { path: "site/sub/a.txt", content: "in a" },
        ];
        for await (const { path, cid } of node.addAll(files, { cidVersion: 1 }))
          if (path === "site") site = String(cid);
        long = String(await node.block.put(Buffer.from("long"), { format: "raw", mhtype: "sha2-512" }));
        process.env.IPFS_NS_MAP = `my-site.example.org:/ipfs/${site},www.example.org:/ipfs/${site}`;
      },
      config: {
        hosts: { "www.example.org": {}, "apps.example.org": {} },
        modules_enabled: ["http", "http_gateway", "http_shop"],
        node_offline: true,
        gateway_dnslink: true,
        gateway_public_gateways: {
          "gw.example": { Paths: ["/ipfs", "/ipns"], UseSubdomains: true, InlineDNSLink: true },
          "dotted.example": { Paths: ["/ipns"], UseSubdomains: true },
          "gw.example:81": { Paths: ["/ipfs"], NoDNSLink: true },
          "*.any.example": { Paths: ["/ipfs"], UseSubdomains: true },
          "127.0.0.2": { Paths: ["/ipfs"], UseSubdomains: true },
        },
      },
      modules: {
        http_shop(module: Module) {
          module.provides("http", {
            default_path: "/",
            cors: { enabled: true, credentials: true, origins: "*" },
            route: {
              "GET /sub/a.txt": "of the shop",
              "GET /cookie": "of the shop",
              "WS /talk": (event) => event.accept(),
            },
          });
        },
      },
    });
    await ask("gw.example", "/ipns/my-site.example.org");
    if (outside === undefined) delete process.env.IPFS_NS_MAP;
    else process.env.IPFS_NS_MAP = outside;
  });
  after(() => host?.stop());

  test("a path on a gateway is redirected to the host of its root, in canonical form", async () => {
    const home = `http://${site}.ipfs.gw.example`;
    assert.deepEqual(await location("gw.example", `/ipfs/${site}/sub/?a=b`), [301, `${home}/sub/?a=b`]);
    assert.deepEqual(await location("GW.Example", `/ipfs/${site.toUpperCase()}`), [301, `${home}/`]);
    const base58 = CID.parse(site).toString(base58btc);
    assert.deepEqual(await location("gw.example", `/ipfs/${base58}`), [301, `${home}/`]);
    assert.deepEqual(await location(`${base58}.ipfs.gw.example:99`, "/x%20y?q"), [
      301,
      `http://${site}.ipfs.gw.example:99/x%20y?q`,
    ]);
    const { status, body } = await ask("gw.example", `/ipfs/${long}`);
    assert.deepEqual([status, /^CID incompatible with DNS label length limit of 63: k/.test(body)], [400, true]);
    assert.equal((await ask("127.0.0.1", `/ipfs/${site}/sub/a.txt`)).status, 404, "no host of the server");
    assert.deepEqual(await location("localhost", `/ipfs/${site}/`), [301, `http://${site}.ipfs.localhost/`]);
  });

  overEach(
    () => host,
    "a path leads to the host of its root, and it answers",
    async (client) => {
      const headers = { host: "gw.example" };
      const led = await client.request({ path: `/ipfs/${site}/sub/a.txt`, headers });
      const at = `${site}.ipfs.gw.example`;
      assert.equal(led.header("location"), `${client.secure ? "https" : "http"}://${at}/sub/a.txt`);
      const named = await client.request({ path: "/ipns/my-site.example.org/", headers: { host: "dotted.example" } });
      const label = "my--site-example-org";
      const dotted = "my-site.example.org";
      assert.equal(
        named.header("location"),
        client.secure ? `https://${label}.ipns.dotted.example/` : `http://${dotted}.ipns.dotted.example/`,
      );
      assert.equal(await client.text({ path: "/sub/a.txt", headers: { host: at } }), "in a");
      assert.equal(await client.status({ path: "/cookie", headers: { host: at } }), 404);
    },
  );

  test("everything on the host of a root is content, whatever the case of the host, and apps do not respond there", async () => {
    for (const name of [`${site}.ipfs.gw.example`, `${site.toUpperCase()}.IPFS.gw.example:8080`]) {
      const { status, body, headers } = await ask(name, "/sub/a.txt", { origin: "http://evil.example" });
      assert.deepEqual([status, body, headers["x-ipfs-path"]], [200, "in a", `/ipfs/${site}/sub/a.txt`]);
      assert.equal(headers["access-control-allow-credentials"], undefined);
      assert.equal((await ask(name, "/cookie")).status, 404);
      assert.equal((await ask(name, `/ipfs/${site}/`)).status, 404);
    }
    assert.equal((await ask("www.example.org", "/sub/a.txt")).body, "of the shop");
    assert.equal((await ask("strange.invalid", "/sub/a.txt")).status, 404);
    assert.equal((await ask(`${site}.ipfs.gw.example`, "/sub/a.txt", {}, "POST")).status, 405);
  });

  test("a page on the host of a root cannot open a websocket of an app", async () => {
    const handshake = {
      connection: "upgrade",
      upgrade: "websocket",
      "sec-websocket-version": "13",
      "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
    };
    assert.equal((await ask(`${site}.ipfs.gw.example`, "/talk", handshake)).status, 404);
  });

  test("a page links to other paths on its own host, and to blocks on the gateway", async () => {
    const { body } = await ask(`${site}.ipfs.gw.example:8080`, "/sub/");
    assert.ok(body.includes('<a href="/sub/a.txt">a.txt</a>'), body);
    assert.match(body, /href="\/\/gw\.example:8080\/ipfs\/[a-z0-9]+\?filename=a\.txt"/);
    assert.ok(body.includes(`<a href="//gw.example:8080/ipfs/${site}">${site}</a>`));
    const directory = await ask(`${site}.ipfs.gw.example`, "/sub?x=1");
    assert.deepEqual([directory.status, directory.headers.location], [301, "/sub/?x=1"]);
  });

  test("an entry with a port takes precedence over the entry without, and a wildcard matches one label", async () => {
    assert.equal((await ask("gw.example:81", `/ipfs/${site}/sub/a.txt`)).body, "in a");
    assert.equal((await ask("gw.example:81", "/ipns/my-site.example.org/")).status, 404);
    assert.equal((await ask("a.any.example", `/ipfs/${site}`)).status, 301);
    assert.equal((await ask("a.b.any.example", `/ipfs/${site}`)).status, 404);
    assert.equal((await ask(`my-site-example-org.ipns.a.any.example`, "/")).status, 404, "only /ipfs is served");
    assert.equal((await ask("127.0.0.2", `/ipfs/${site}/sub/a.txt`)).body, "in a", "an address has no hosts below it");
  });

  test("domains are encoded as one label if the gateway requires that, and both forms are served", async () => {
    const inlined = "my--site-example-org";
    assert.deepEqual(await location("gw.example", "/ipns/my-site.example.org/sub/"), [
      301,
      `http://${inlined}.ipns.gw.example/sub/`,
    ]);
    for (const name of [inlined, "my-site.example.org"]) {
      const { body, headers } = await ask(`${name}.ipns.gw.example`, "/");
      assert.deepEqual([body, headers["x-ipfs-path"]], ["home", "/ipns/my-site.example.org/"]);
    }
  });

  test("a name that is not a valid host causes no redirect", async () => {
    for (const name of ["evil.example%3F", "evil.example%23", "a%40evil.example", "a%5Cb", "%0d%0aset-cookie%3Aa"]) {
      const { status, headers } = await ask("gw.example", `/ipns/${name}/x`);
      assert.deepEqual([headers.location, status >= 400], [undefined, true], name);
    }
  });

  test("a host with a DNSLink is a website unless the server is configured for that host", async () => {
    const { body, headers } = await ask("my-site.example.org", "/sub/a.txt");
    assert.deepEqual([body, headers["x-ipfs-path"]], ["in a", "/ipns/my-site.example.org/sub/a.txt"]);
    assert.equal((await ask("www.example.org", "/")).status, 404);
  });

  test("X-Forwarded-Host and X-Forwarded-Proto of a trusted proxy are used", async () => {
    const forwarded = { "x-forwarded-host": "gw.example", "x-forwarded-proto": "https" };
    assert.deepEqual(await location("inner.example", `/ipfs/${site}/`, forwarded), [
      301,
      `https://${site}.ipfs.gw.example/`,
    ]);
    const lying = { "x-forwarded-host": `gw.example/@evil.example` };
    assert.equal((await ask("www.example.org", "/cookie", lying)).body, "of the shop");
  });
});

test("X-Forwarded-Host of an untrusted client is ignored, and null removes localhost", async () => {
  await using host = await startHost({
    config: {
      modules_enabled: ["http", "http_gateway"],
      https_ports: [],
      node_offline: true,
      trusted_proxies: [],
      gateway_public_gateways: { localhost: null, "gw.example": { Paths: ["/ipfs"], UseSubdomains: true } },
    },
  });
  const ask = (headers: Record<string, string>) => askAt(host.http, "/ipfs/bafkqaaa?format=raw", headers, "GET");
  assert.equal(
    (await ask({ host: "gw.example", "x-forwarded-proto": "https" })).headers.location?.slice(0, 7),
    "http://",
  );
  assert.equal((await ask({ host: "a.invalid", "x-forwarded-host": "gw.example" })).status, 200);
  assert.equal((await ask({ host: "localhost" })).status, 200);
});

test("an invalid option is rejected with the name of the wrong entry", () => {
  for (const [spec, said] of [
    [{ Paths: "/ipfs" }, /gateway_public_gateways\.gw\.example\.Paths is "\/ipfs", but it must be a list of paths/],
    [{ Subdomains: true }, /gateway_public_gateways\.gw\.example\.Subdomains .* one of Paths, UseSubdomains/],
    [true, /gateway_public_gateways\.gw\.example is true, but it must be an object, or null/],
  ] as const) {
    assert.throws(() => readGatewaySpecs({ "gw.example": spec }), said);
  }
});

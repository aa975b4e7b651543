/**
 * If an app trusts its own origin, content by path is redirected to the host of its root, or
 * sandboxed.
 */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { Module } from "#core/types.ts";
import { startHost } from "#test/support/host.ts";
import { type GatewayHost, type GatewayResponse, startGatewayWith } from "./support.ts";

const cids: Record<string, string> = {};
let host: GatewayHost;

const navigation = { "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document", "Sec-Fetch-Site": "none" };

before(async () => {
  host = await startGatewayWith(
    async (node) => {
      const files = {
        "x.html": "<script>fetch('/api/v0/id')</script>",
        "x.svg": "<svg/>",
        "x.xml": "<a/>",
        "sw.js": "",
      };
      for (const [path, content] of Object.entries(files)) {
        await node.add({ path, content }, { cidVersion: 1 }).then(({ cid }) => (cids[path] = `${cid}`));
      }
      const all = Object.entries(files).map(([path, content]) => ({ path: `site/${path}`, content }));
      for await (const { path, cid } of node.addAll([...all, { path: "site/x.pdf", content: "%PDF-1.4" }], {
        cidVersion: 1,
      }))
        if (path === "site") cids.site = `${cid}`;
      cids.document = `${await node.dag.put({ links: [] }, { storeCodec: "dag-cbor" })}`;
      cids.name = `${(await node.key.list())[0]?.id}`;
      await node.name.publish(`/ipfs/${cids.site}`, { allowOffline: true });
    },
    {
      modules_enabled: ["http", "http_api", "http_gateway"],
      gateway_public_gateways: { "paths.example": { Paths: ["/ipfs", "/ipns"] } },
    },
  );
});
after(() => host?.stop());

const policyOf = (response: GatewayResponse): string => String(response.headers["content-security-policy"] ?? "");

describe("next to the RPC", () => {
  test("content by path is sandboxed in every format, and its bytes are unchanged", async () => {
    for (const path of [
      `/ipfs/${cids.site}/x.html`,
      `/ipfs/${cids.site}/x.svg`,
      `/ipfs/${cids.site}/x.xml`,
      `/ipfs/${cids.site}/x.pdf`,
      `/ipfs/${cids.site}/`,
      `/ipfs/${cids.site}?format=raw`,
      `/ipfs/${cids["x.html"]}`,
      `/ipfs/${cids.document}`,
      `/ipfs/${cids.site}/none`,
      `/ipns/${cids.name}/x.html`,
      "/ipfs/nothing",
    ]) {
      for (const headers of [{}, { Accept: "text/html" }, { Host: "paths.example" }, { Host: "192.0.2.7" }]) {
        const response = await host.ask(path, headers);
        assert.match(policyOf(response), /(^|, )sandbox allow-/, `${path} ${JSON.stringify(headers)}`);
        assert.doesNotMatch(policyOf(response), /allow-same-origin/);
        assert.notEqual(response.status, 302, path);
      }
    }
    assert.equal((await host.ask(`/ipfs/${cids["x.html"]}`)).body, "<script>fetch('/api/v0/id')</script>");
  });

  test("a browser at a loopback address is redirected to the host of the root", async () => {
    const site = `http://${cids.site}.ipfs.localhost:${host.http}`;
    for (const name of ["127.0.0.1", "[::1]"]) {
      for (const dest of ["document", "iframe", "embed", "object"]) {
        const sent = { ...navigation, "Sec-Fetch-Dest": dest, Host: `${name}:${host.http}` };
        const { status, headers } = await host.ask(`/ipfs/${cids.site}/x.html?a=b`, sent);
        assert.deepEqual([status, headers.location], [302, `${site}/x.html?a=b`], `${name} ${dest}`);
        assert.deepEqual([headers.vary, headers["cache-control"]], ["Sec-Fetch-Dest, Sec-Fetch-Mode", "no-store"]);
      }
      const named = await host.ask(`/ipns/${cids.name}/x.html`, { ...navigation, Host: `${name}:${host.http}` });
      assert.equal(named.headers.location, `http://${cids.name}.ipns.localhost:${host.http}/x.html`);
    }
    const image = { "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image" };
    assert.equal((await host.ask(`/ipfs/${cids.site}/x.svg`, image)).status, 200);
    for (const name of ["192.0.2.7", "paths.example", "127.0.0.2"]) {
      const { status } = await host.ask(`/ipfs/${cids.site}/x.html`, { ...navigation, Host: name });
      assert.equal(status, 200, name);
    }
  });

  test("the host of a root is not sandboxed, and may have service workers", async () => {
    const own = { Host: `${cids.site}.ipfs.localhost:${host.http}` };
    const page = await host.ask("/x.html", { ...own, ...navigation });
    assert.deepEqual([page.status, policyOf(page)], [200, ""]);
    assert.equal((await host.ask("/sw.js", { ...own, "Service-Worker": "script" })).status, 200);
    assert.equal((await host.ask("/api/v0/id", own)).status, 404);
  });

  test("the script of a service worker is refused by path", async () => {
    const { status, body } = await host.ask(`/ipfs/${cids.site}/sw.js`, { "Service-Worker": "script" });
    assert.equal(status, 400);
    assert.match(body, /A service worker may not come from content that shares its origin .* CID\.ipfs\.localhost/);
    assert.equal((await host.ask(`/ipfs/${cids.site}/sw.js`)).status, 200);
  });

  test("policies of the operator stay in force next to the sandbox", async () => {
    await using other = await startGatewayWith(async () => undefined, {
      modules_enabled: ["http", "http_api", "http_gateway"],
      gateway_headers: { "Content-Security-Policy": "img-src 'none'" },
    });
    assert.match(policyOf(await other.ask("/ipfs/bafkqaaa")), /^img-src 'none', sandbox allow-/);
  });

  test("the RPC refuses pages below /ipfs and /ipns, and pages without an origin", async () => {
    const here = `http://127.0.0.1:${host.http}`;
    const callers: [what: string, headers: Record<string, string>, status: number][] = [
      ["a program", {}, 200],
      ["a page elsewhere on this origin", { Origin: here, Referer: `${here}/webui/` }, 200],
      ["a page whose path only begins alike", { Origin: here, Referer: `${here}/ipfs-docs/` }, 200],
      ["content", { Origin: here, Referer: `${here}/ipfs/${cids.site}/x.html` }, 403],
      ["content that says no origin", { Referer: `${here}/ipfs/${cids.site}/x.html` }, 403],
      ["content by a name", { Origin: here, Referer: `${here}/ipns/example.org/` }, 403],
      ["content whose path is escaped", { Origin: here, Referer: `${here}/%69pfs/${cids.site}/` }, 403],
      ["content whose path has more slashes", { Origin: here, Referer: `${here}//ipfs//${cids.site}/` }, 403],
      [
        "content by another name of this machine",
        { Origin: here, Referer: `http://localhost:${host.http}/ipfs/${cids.site}/` },
        403,
      ],
      ["a sandboxed page", { Origin: "null" }, 403],
      ["a host of its own", { Origin: `http://${cids.site}.ipfs.localhost:${host.http}` }, 403],
    ];
    for (const [what, headers, status] of callers) {
      assert.equal((await host.ask("/api/v0/version", headers, "POST")).status, status, what);
    }
    const { body } = await host.ask("/api/v0/version", { Referer: `${here}/ipfs/${cids.site}/` }, "POST");
    assert.match(body, /^403 - Forbidden: pages below \/ipfs and \/ipns may not call the API: .*api_webui/);
  });
});

test("an origin that the configuration lists may call the RPC from any path, but the server's own origin may not", async () => {
  await using own = await startGatewayWith(
    (node) =>
      node.config.set("API.HTTPHeaders", {
        "Access-Control-Allow-Origin": ["https://apps.example", "http://127.0.0.1"],
      }),
    { modules_enabled: ["http", "http_api", "http_gateway"] },
  );
  const call = async (origin: string) =>
    (await own.ask("/api/v0/version", { Host: "127.0.0.1", Origin: origin, Referer: `${origin}/ipfs/CID/` }, "POST"))
      .status;
  assert.equal(await call("https://apps.example"), 200);
  assert.equal(await call("http://127.0.0.1"), 403);
});

test("the front end of api_webui may call the API from a path below /ipfs at the API's addresses", async () => {
  const webui = "bafybeiczsscdsbs7ffqz55asqdf3smv6klcw3gofszvwlyarci47bgf354";
  await using own = await startGatewayWith(async () => undefined, {
    modules_enabled: ["http", "http_api", "http_gateway"],
    api_webui: `/ipfs/${webui}`,
  });
  const here = `http://127.0.0.1:${own.http}`;
  const call = (page: string) => own.ask("/api/v0/version", { Origin: here, Referer: `${here}${page}` }, "POST");
  assert.equal((await call(`/ipfs/${webui}/`)).status, 200);
  assert.equal((await call(`/ipfs/${webui}/index.html`)).status, 200);
  assert.equal((await call(`/ipfs/${webui}x/`)).status, 403);
});

test("without an app that trusts its origin, content by path is neither redirected nor sandboxed, until one is loaded", async () => {
  const alone = await startHost({
    config: { modules_enabled: ["http", "http_gateway", "mod_trusting"], https_ports: [], node_offline: true },
    modules: {
      mod_trusting(module: Module) {
        const leave = module.add_item("trusts-own-origin", {});
        module.provides("http", { default_path: "/leave", route: { GET: () => leave().then(() => "left") } });
      },
    },
  });
  try {
    const ask = async () => (await fetch(`http://127.0.0.1:${alone.http}/ipfs/bafkqaaa`)).headers;
    assert.match((await ask()).get("content-security-policy") ?? "", /^sandbox /);
    await fetch(`http://127.0.0.1:${alone.http}/leave`);
    assert.equal((await ask()).get("content-security-policy"), null);
  } finally {
    await alone.stop();
  }
});

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { eventually } from "#test/support/eventually.ts";
import { type RpcHost, startOnline, startRpc } from "#test/unit/modules/mod_http_api/commands/support.ts";
import { askAt, type GatewayResponse, prepareRepo } from "../support.ts";

describe("a gateway at Addresses.Gateway of a repo", () => {
  let host: RpcHost;
  let cid = "";
  const port = () => host.host.listening().find(({ service }) => service === "http_api_gateway")?.port as number;
  const ask = (path: string, headers: Record<string, string> = {}, method = "GET"): Promise<GatewayResponse> =>
    askAt(port(), path, headers, method);
  const set = (key: string, value: unknown) =>
    host.call(`config?arg=${key}&arg=${encodeURIComponent(JSON.stringify(value))}&json=true`);
  const file = () => readFile(join(host.folder, "data", "repo", "gateway"), "utf8");

  before(async () => {
    host = await startRpc(
      { modules_enabled: ["http", "http_api", "http_gateway"] },
      {
        prepare: prepareRepo,
      },
    );
    const { lines } = await host.call("block/put?format=raw", { data: "a block" });
    cid = (lines[0] as { Key: string }).Key;
  });
  after(() => host?.stop());

  test("content and the read-only commands are served", async () => {
    assert.equal((await ask(`/ipfs/${cid}`)).status, 200);
    assert.equal((await ask(`/api/v0/block/stat?arg=${cid}`)).status, 200);
    assert.equal((await ask("/api/v0/pin/ls")).status, 404);
    assert.deepEqual([(await ask("/")).status, (await ask("/ipld/x")).status], [404, 404]);
    const version = await ask("/version");
    assert.match(version.body, /^Commit: .*\nClient Version: go-ipfs\/0\.9\.0\/\nProtocol Version: ipfs\/0\.1\.0\n$/);
  });

  test("the file gateway contains the address while content is served", async () => {
    assert.equal(await file(), `http://127.0.0.1:${port()}`);
    await host.host.unload("http_gateway");
    await assert.rejects(file(), { code: "ENOENT" });
    assert.match((await ask(`/ipfs/${cid}`)).body, /^Content paths are not served here/);
    await host.host.load("http_gateway");
    assert.equal((await ask(`/ipfs/${cid}`)).status, 200);
    const url = `http://127.0.0.1:${port()}`;
    await eventually(`the file contains ${url}`, async () => (await file().catch(() => "")) === url);
  });

  test("changed headers, redirects and error pages of the config apply at once", async () => {
    const { text } = await set("Gateway.HTTPHeaders", {
      "X-Gateway": ["a", "b"],
      "Access-Control-Allow-Headers": ["X-Own"],
      "Access-Control-Allow-Origin": ["https://app.example"],
    });
    assert.match(text, /"Key":"Gateway.HTTPHeaders"/);
    const { headers } = await ask(`/ipfs/${cid}`);
    assert.equal(headers["x-gateway"], "a, b");
    assert.equal(headers["access-control-allow-origin"], "https://app.example");
    assert.equal(headers["access-control-allow-headers"], "Content-Type, Range, User-Agent, X-Own, X-Requested-With");

    await set("Gateway.RootRedirect", `/ipfs/${cid}`);
    const { status, headers: redirect } = await ask("/");
    assert.deepEqual([status, redirect.location], [302, `/ipfs/${cid}`]);
    await set("Gateway.RootRedirect", "");
    assert.equal((await ask("/")).status, 404);

    const browser = { accept: "text/html" };
    assert.match((await ask("/ipfs/nonsense", browser)).headers["content-type"] ?? "", /^text\/html/);
    await set("Gateway.DisableHTMLErrors", true);
    assert.match((await ask("/ipfs/nonsense", browser)).headers["content-type"] ?? "", /^text\/plain/);
  });

  test("changed limits of the config apply at once", async () => {
    await set("Gateway.DeserializedResponses", false);
    assert.equal((await ask(`/ipfs/${cid}`)).status, 406);
    await set("Gateway.DeserializedResponses", null);
    const range = { range: "bytes=0-1" };
    await set("Gateway.MaxRangeRequestFileSize", 3);
    assert.equal((await ask(`/ipfs/${cid}`, range)).status, 501);
    await set("Gateway.MaxRangeRequestFileSize", null);
    assert.equal((await ask(`/ipfs/${cid}`, range)).status, 206);
    await set("Gateway.MaxConcurrentRequests", 1);
    const all = await Promise.all(Array.from({ length: 20 }, () => ask(`/ipfs/${cid}`)));
    assert.ok(all.every(({ status }) => status === 200 || status === 429));
    await set("Gateway.MaxConcurrentRequests", null);
  });

  test("Gateway.ExposeRoutingAPI applies at once, and the host's own ports do not serve routing by default", async () => {
    const path = `/routing/v1/providers/${cid}`;
    assert.equal((await ask(path)).body, '{"Providers":[]}');
    await set("Gateway.ExposeRoutingAPI", false);
    assert.equal((await ask(path)).status, 404);
    await set("Gateway.ExposeRoutingAPI", null);
    assert.equal((await ask(path)).status, 200);
    assert.equal((await askAt(host.http, path, {}, "GET")).status, 404);
  });

  test("changed public gateways of the config apply at once", async () => {
    const at = (host: string) => ask(`/ipfs/${cid}?format=raw`, { host });
    assert.equal((await at("gw.example")).status, 200);
    await set("Gateway.PublicGateways", { "gw.example": { Paths: ["/ipfs"], UseSubdomains: true }, localhost: null });
    assert.equal((await at("gw.example")).headers.location, `http://${cid}.ipfs.gw.example/?format=raw`);
    assert.equal((await at("localhost")).status, 200);
    assert.equal((await ask("/api/v0/version", { host: `${cid}.ipfs.gw.example` })).status, 404);
    await set("Gateway.PublicGateways", {});
    assert.equal((await at("localhost")).status, 301);
    // These names need no DNS lookup, because they are reserved.
    await set("Gateway.NoDNSLink", true);
    assert.equal((await at("gw.invalid")).status, 200);
    await set("Gateway.NoDNSLink", false);
    assert.equal((await at("gw.invalid")).status, 200);
  });

  test("an invalid value is logged, and the previous value stays in force", async () => {
    const response = await askAt(host.http, `/api/v0/config?arg=Gateway.RetrievalTimeout&arg=soon`, {}, "POST");
    assert.match(
      String(response.headers["x-modhost-config-waits"]),
      /Gateway\.RetrievalTimeout;reason=.*invalid duration/,
    );
    assert.equal((await ask(`/ipfs/${cid}`)).status, 200);
    // The invalid value is still in the config at the next start.
    await host.host.unload("http_gateway");
    await host.host.load("http_gateway");
    assert.equal((await ask(`/ipfs/${cid}`)).status, 200);
    assert.match(host.log(), /Gateway\.RetrievalTimeout is not in force, the default 30s is: .*invalid duration/);
  });
});

test("an online node fetches content for clients as the config says, with its time limits", async () => {
  await using host = await startOnline(
    { "Addresses.Gateway": "/ip4/127.0.0.1/tcp/0", "Discovery.MDNS.Enabled": false },
    { modules_enabled: ["http", "http_api", "http_gateway"] },
  );
  const port = host.host.listening().find(({ service }) => service === "http_api_gateway")?.port as number;
  const missing = "/ipfs/bafkreifzjut3te7nhyekklss27nh3k72ysco7y32koao5eei66wof36n5e";
  const set = (key: string, value: unknown) =>
    host.call(`config?arg=${key}&arg=${encodeURIComponent(JSON.stringify(value))}&json=true`);
  const ask = () => askAt(port, missing, {}, "GET");
  await set("Gateway.RetrievalTimeout", "200ms");
  const late = await ask();
  assert.deepEqual([late.status, late.headers["retry-after"]], [504, "60"]);
  await set("Gateway.RetrievalTimeout", "1h");
  await set("Gateway.MaxRequestDuration", "200ms");
  assert.equal((await ask()).status, 504);
  await set("Gateway.MaxRequestDuration", "1h");
  await set("Gateway.NoFetch", true);
  assert.equal((await ask()).status, 404);
});

import assert from "node:assert/strict";
import { test } from "node:test";
import { reconfigured } from "#test/unit/core/operations/reconfigured.ts";
import { startRpc } from "#test/unit/modules/mod_http_api/commands/support.ts";
import { askAt, prepareRepo } from "./support.ts";

/** The empty directory, which every repo contains. */
const PATH = "/ipfs/QmUNLLsPACCz1vLxQVkXqqLX5R1X345qqfHbsf67hvA3Nn/";

test("each client of the gateway has one rate limit for all ports, and gets 429 beyond it", async () => {
  await using host = await startRpc(
    {
      modules_enabled: ["http", "http_api", "http_gateway", "serving"],
      gateway_rate: "1/h",
      gateway_burst: 3,
      gateway_routing: true,
    },
    {
      prepare: prepareRepo,
      modules: {
        serving(module) {
          const gateway = module.depends<{ serve_cid(path: string): never }>("http_gateway");
          module.provides("http", { route: { "GET /*": gateway.serve_cid(PATH.slice(0, -1)) } });
        },
      },
    },
  );
  const repoPort = host.host.listening().find(({ service }) => service === "http_api_gateway")?.port as number;
  const ask = (port: number, path: string, client: string, method = "GET") =>
    askAt(port, path, { "x-forwarded-for": client, origin: "http://page.example" }, method);
  // A preflight request does not count, but the request that follows it does.
  assert.equal((await ask(host.http, PATH, "192.0.2.1", "OPTIONS")).status, 200);
  assert.equal((await ask(host.http, PATH, "192.0.2.1")).status, 200);
  assert.equal((await ask(repoPort, PATH, "192.0.2.1", "HEAD")).status, 200);
  assert.equal((await ask(repoPort, "/routing/v1/providers/bafkqaaa", "192.0.2.1")).status, 200);
  for (const [port, path] of [
    [host.http, PATH],
    [repoPort, PATH],
    [host.http, "/routing/v1/providers/bafkqaaa"],
  ] as const) {
    const { status, headers, body } = await ask(port, path, "192.0.2.1");
    assert.deepEqual(
      [status, headers["cache-control"], headers["access-control-allow-origin"]],
      [429, "no-store", "*"],
    );
    const wait = Number(headers["retry-after"]);
    assert.ok(wait > 0 && wait <= 3600, `${wait}`);
    assert.match(body, /from your address/);
  }
  assert.equal((await ask(host.http, PATH, "192.0.2.2")).status, 200);
  // The limit does not apply to content that modules serve themselves.
  assert.equal((await ask(host.http, "/serving/", "192.0.2.1")).status, 200);
});

test("the rate limit is off by default, can be changed while the server runs, and continues if its values stay the same", async () => {
  const base = { modules_enabled: ["http", "http_gateway"], node_offline: true };
  await using server = await reconfigured(base);
  const statuses = async (times: number) => {
    const given: number[] = [];
    for (let at = 0; at < times; at += 1) given.push((await askAt(server.port(), PATH, {}, "GET")).status);
    return given;
  };
  assert.deepEqual(await statuses(3), [200, 200, 200]);
  const rate = { gateway_rate: "2/h", gateway_burst: 2 };
  await server.apply({ ...base, ...rate });
  assert.deepEqual(await statuses(3), [200, 200, 429]);
  await server.apply({ ...base, ...rate, gateway_html_errors: false });
  assert.deepEqual(await statuses(1), [429]);
  await assert.rejects(server.apply({ ...base, gateway_rate: "fast" }), /gateway_rate .*10\/s/);
  assert.deepEqual(await statuses(1), [429]);
  await server.apply(base);
  assert.deepEqual(await statuses(1), [200]);
});

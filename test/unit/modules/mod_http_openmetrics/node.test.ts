import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { openRepo } from "#node/storage/repo/repo.ts";
import { readExposition } from "#test/support/exposition.ts";
import { withHost } from "#test/support/host.ts";

const host = withHost({
  async prepare(folder) {
    const repo = await openRepo(join(folder, "repo"), { profile: "local" });
    // The first address is replaced by the host's own ports.
    await repo.config.set("Addresses.API", () => ["/ip4/127.0.0.1/tcp/5001", "/ip4/127.0.0.1/tcp/0"]);
    await repo.close();
  },
  config: (folder) => ({
    modules_enabled: ["http", "http_api", "http_openmetrics"],
    node_offline: true,
    node_repo: join(folder, "repo"),
  }),
});

test("metrics of the node and its commands are included, with the names of go-ipfs if it has them", async () => {
  const base = `http://127.0.0.1:${host().http}`;
  const call = async (path: string) => {
    const response = await fetch(`${base}/api/v0/${path}`, { method: "POST" });
    await response.arrayBuffer();
    return response.status;
  };
  assert.deepEqual(
    [
      await call("id"),
      await call("id"),
      await call("cat?arg=/ipfs/QmUNLLsPACCz1vLxQVkXqqLX5R1X345qqfHbsf67hvA3Nm"),
      await call("nothing"),
    ],
    [200, 200, 500, 404],
  );
  const response = await fetch(`${base}/debug/metrics/prometheus`);
  const families = readExposition(await response.text(), "prometheus");
  const samples = new Map(
    [...families.values()].flatMap(({ samples }) =>
      samples.map(({ name, labels, value }) => [[name, ...Object.values(labels)].join(" "), value] as const),
    ),
  );
  assert.equal(samples.get("modhost_rpc_commands_total id ok"), 2);
  assert.equal(samples.get("modhost_rpc_commands_total cat error"), 1);
  assert.equal(samples.get("modhost_rpc_command_duration_seconds_count id"), 2);
  assert.equal(samples.get("modhost_rpc_commands_running"), 0);
  assert.equal(samples.get("ipfs_http_requests_total post 200 api"), 2);
  assert.equal(samples.get("ipfs_http_requests_total post 404 api"), 1);
  assert.equal(samples.get("ipfs_info 0.9.0 "), 1);
  assert.ok((samples.get("modhost_node_repo_size_bytes") ?? 0) > 0);
  assert.equal(families.get("ipfs_p2p_peers_total")?.type, "gauge");
});

test("metrics are also available at the API's own ports, as long as the module is loaded", async () => {
  const port = host()
    .host.listening()
    .find(({ service }) => service === "http_api_further")?.port;
  const status = () => fetch(`http://127.0.0.1:${port}/debug/metrics/prometheus`).then((response) => response.status);
  assert.equal(await status(), 200);
  await host().host.unload("http_openmetrics");
  assert.equal(await status(), 404);
  await host().host.load("http_openmetrics");
  assert.equal(await status(), 200);
});

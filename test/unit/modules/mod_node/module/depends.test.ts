import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import type { NodeModule } from "modhost/node";
import type { Module } from "#core/types.ts";
import { startHost } from "#test/support/host.ts";

test("a module can use the node without the RPC, with the options node_*", async () => {
  let node: NodeModule | undefined;
  await using host = await startHost({
    config: (folder) => ({
      https_ports: [],
      modules_enabled: ["http", "keeper"],
      node_repo: join(folder, "kept"),
      node_data: join(folder, "blocks"),
      node_profile: "local,lowpower",
      node_offline: true,
    }),
    modules: {
      keeper(module: Module) {
        module.depends("http");
        const own = module.depends<NodeModule>("node");
        node = own;
        module.provides("http", { route: { "GET /text/*": (_, path) => own.cat(path) } });
      },
    },
  });
  assert.ok(node?.isOpen);
  await node.open();
  const { cid } = await node.add("kept by a module\n", { cidVersion: 1 });
  const response = await fetch(`http://127.0.0.1:${host.http}/keeper/text/${cid}`);
  assert.deepEqual([response.status, await response.text()], [200, "kept by a module\n"]);
  assert.equal((await fetch(`http://127.0.0.1:${host.http}/api/v0/version`, { method: "POST" })).status, 404);

  assert.equal(node.offline, true);
  await node.goOnline();
  assert.deepEqual([node.lowLevel.online, (await node.id()).addresses], [false, null]);
  const { repo } = node.lowLevel;
  assert.equal(repo.path, join(host.folder, "kept"));
  assert.ok(repo.stores.metadata.startsWith(join(host.folder, "blocks")));
  const config = JSON.parse(await readFile(join(host.folder, "kept", "config"), "utf8"));
  assert.deepEqual([config.Bootstrap, config.Routing.Type], [[], "dhtclient"]);

  // Only the host closes the node.
  await node.close();
  assert.equal((await node.block.stat(cid)).size, 17);
});

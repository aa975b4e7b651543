import assert from "node:assert/strict";
import { test } from "node:test";
import type { NodeModule } from "modhost/node";
import type { Module } from "#core/types.ts";
import { startHost } from "#test/support/host.ts";

const cid = "QmZULkCELmmk5XNfCgTnCyFgAVxBRBXyDHGGMVoLFLiXEN";
const hello = Buffer.from("0a0c0802120668656c6c6f0a1806", "hex");

test("another module gets the very node that serves the calls, by module.depends", async () => {
  let stored: Promise<unknown> | undefined;
  await using host = await startHost({
    config: { https_ports: [], modules_enabled: ["http", "http_api", "keeper"] },
    modules: {
      keeper(module: Module) {
        const { block } = module.depends<NodeModule>("node");
        stored = block.put(hello);
      },
    },
  });
  await stored;
  const call = (path: string) => fetch(`http://127.0.0.1:${host.http}/api/v0/${path}`, { method: "POST" });
  assert.equal(await (await call(`cat?arg=${cid}&offline=true`)).text(), "hello\n");
});

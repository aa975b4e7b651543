import assert from "node:assert/strict";
import { test } from "node:test";
import type { Module } from "#core/types.ts";
import type { HttpApi } from "#modules/mod_http_api/index.ts";
import { parseCid } from "#node/formats/cid/text.ts";
import { startHost } from "#test/support/host.ts";

const cid = "QmZULkCELmmk5XNfCgTnCyFgAVxBRBXyDHGGMVoLFLiXEN";
const hello = Buffer.from("0a0c0802120668656c6c6f0a1806", "hex");

test("another module has the very node that answers the calls, by module.depends", async () => {
  let stored: Promise<void> | undefined;
  await using host = await startHost({
    config: { https_ports: [], modules_enabled: ["http", "keeper"] },
    modules: {
      keeper(module: Module) {
        const api = module.depends<HttpApi>("http_api");
        stored = api.node.blocks.put([{ cid: parseCid(cid), bytes: hello }]);
      },
    },
  });
  await stored;
  const call = (path: string) => fetch(`http://127.0.0.1:${host.http}/api/v0/${path}`, { method: "POST" });
  assert.equal(await (await call(`cat?arg=${cid}&offline=true`)).text(), "hello\n");
});

/** The RPC of the node behind compression. Its clients rely on the exact bytes of responses. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { gunzipSync } from "node:zlib";
import { startRpc } from "#test/unit/modules/mod_http_api/commands/support.ts";

test("responses of the RPC are not compressed under *, only when the entry names the app", async () => {
  const responses = async (http_compress: unknown) => {
    const modules_enabled = ["http", "http_api", "http_compress"];
    await using host = await startRpc({ modules_enabled, http_compress });
    const headers = { "Accept-Encoding": "gzip" };
    const rpc = await host.client("HTTP/1.1").request({ method: "POST", path: "/api/v0/commands", headers });
    const document = await host.client("HTTP/1.1").request({ path: "/api/openapi.json", headers });
    return { rpc, document };
  };
  const plain = await responses({});
  const ofAll = await responses({ "*": {} });
  const named = await responses({ "*": {}, api: { encodings: ["gzip"] } });
  const lines = ({ rpc }: typeof plain) => rpc.lines.filter(([name]) => name !== "Date");
  assert.ok(plain.rpc.bytes.length > 1024);
  assert.deepEqual(ofAll.rpc.bytes, plain.rpc.bytes);
  assert.deepEqual(lines(ofAll), lines(plain));
  assert.equal(ofAll.document.header("content-encoding"), "gzip");
  assert.deepEqual(gunzipSync(named.rpc.bytes), plain.rpc.bytes);
});

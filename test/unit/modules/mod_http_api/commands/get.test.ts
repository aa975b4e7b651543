import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { gunzipSync } from "node:zlib";
import { extract } from "tar-stream";
import { type RpcHost, startRpc } from "./support.ts";

const content = "what is packed and unpacked again, ".repeat(3000);

let host: RpcHost;
let cid: string;
before(async () => {
  host = await startRpc();
  const { lines } = await host.call("add", { "a file": content });
  cid = (lines.at(-1) as { Hash: string }).Hash;
});
after(() => host?.stop());

async function get(options: string): Promise<Buffer> {
  const response = await fetch(`http://127.0.0.1:${host.http}/api/v0/get?arg=${cid}${options}`, { method: "POST" });
  assert.equal(response.status, 200);
  return Buffer.from(await response.arrayBuffer());
}

async function unpacked(archive: Buffer): Promise<[name: string, content: string][]> {
  const found: [string, string][] = [];
  const packed = extract();
  packed.end(archive);
  for await (const entry of packed)
    found.push([entry.header.name, String(Buffer.concat(await Array.fromAsync(entry as AsyncIterable<Buffer>)))]);
  return found;
}

describe("get", () => {
  test("get returns a tar archive", async () => assert.deepEqual(await unpacked(await get("")), [[cid, content]]));

  for (let level = 1; level <= 9; level += 1) {
    test(`get compresses at level ${level}`, async () => {
      const options = `&compress=true&compression-level=${level}`;
      const packed = await get(options);
      assert.equal(gunzipSync(packed).toString(), content);
      assert.ok(packed.length < content.length / 20, `${packed.length} bytes`);
      assert.deepEqual(await unpacked(gunzipSync(await get(`${options}&archive=true`))), [[cid, content]]);
    });
  }

  test("get sends fewer bytes at the highest level than at the lowest", async () => {
    const [fast, best] = await Promise.all([1, 9].map((level) => get(`&compress=true&compression-level=${level}`)));
    assert.ok((best as Buffer).length < (fast as Buffer).length);
  });
});

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { type RpcHost, startRpc } from "#test/unit/modules/mod_http_api/commands/support.ts";
import { bytesInUse, type CallResult, call, expectGrowthBelow, idle } from "./lab.ts";

const mebibyte = 1024 * 1024;

async function segmentBytes({ folder }: RpcHost): Promise<number> {
  const at = join(folder, "data", "repo", "segments");
  const names = (await readdir(at)).filter((name) => name.endsWith(".car"));
  const sizes = await Promise.all(names.map(async (name) => (await stat(join(at, name))).size));
  return sizes.reduce((sum, size) => sum + size, 0);
}

interface Added {
  readonly Hash: string;
}

const hashOf = ({ values }: CallResult<Added>) => values.at(-1)?.Hash;

test("400 concurrent adds of one content all succeed, and it is stored once", async () => {
  await using host = await startRpc();
  const content = randomBytes(20_000);
  const before = await segmentBytes(host);
  const inUse = bytesInUse();
  const responses = await Promise.all(
    Array.from({ length: 400 }, () => call<Added>(host, "add?quieter=true", content)),
  );
  const failed = responses.filter(({ status, message }) => status !== 200 || message !== undefined);
  assert.deepEqual(failed, []);
  const [cid, ...others] = new Set(responses.map(hashOf));
  assert.deepEqual(others, []);
  const grown = (await segmentBytes(host)) - before;
  assert.ok(grown < content.length + 1000, `${grown} bytes for ${content.length}`);
  responses.length = 0;
  await idle(host);
  await expectGrowthBelow(inUse, 48 * mebibyte);
  assert.deepEqual((await call(host, `cat?arg=${cid}`)).bytes, content);
  assert.deepEqual(
    (await call<{ Keys: object }>(host, `pin/ls?arg=${cid}`)).values.map(({ Keys }) => Keys),
    [{ [cid as string]: { Type: "recursive" } }],
  );
});

test("concurrent adds, pins, unpins and collections lose nothing that was confirmed", async () => {
  await using host = await startRpc();
  let running = true;
  let collections = 0;
  const collecting = (async () => {
    while (running) {
      const { status, message } = await call(host, "repo/gc");
      assert.deepEqual([status, message], [200, undefined]);
      collections += 1;
    }
  })();
  const stored = new Map<string, Buffer>();
  const adders = Array.from({ length: 6 }, async (_, adder) => {
    for (let round = 0; round < 7; round += 1) {
      const content = Buffer.concat([randomBytes(300_000), Buffer.from(`${adder} ${round}`)]);
      const response = await call<Added>(host, "add?quieter=true", content);
      assert.deepEqual([response.status, response.message], [200, undefined]);
      const cid = hashOf(response) as string;
      if (round % 3 === 0) await call(host, `pin/rm?arg=${cid}`);
      else stored.set(cid, content);
    }
  });
  await Promise.all(adders);
  running = false;
  await collecting;
  assert.ok(collections > 1);
  for (const [cid, content] of stored) assert.ok((await call(host, `cat?arg=${cid}`)).bytes.equals(content), cid);
  await call(host, "repo/gc");
  const { values, message } = await call<{ Msg: string }>(host, "repo/verify");
  assert.deepEqual([message, values.at(-1)?.Msg], [undefined, "verify complete, all blocks validated."]);
  // At most three blocks of each file, the directory that wraps it, and the directory of a new
  // repo.
  const { NumObjects } = (await call<{ NumObjects: number }>(host, "repo/stat")).values[0] as { NumObjects: number };
  assert.ok(NumObjects <= stored.size * 4 + 1, `${NumObjects} blocks for ${stored.size} files`);
});

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { type RpcHost, startRpc } from "#test/unit/modules/mod_http_api/commands/support.ts";
import { type Answered, bytesInUse, call, expectHeld, idle } from "./lab.ts";

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

const hashOf = ({ values }: Answered<Added>) => values.at(-1)?.Hash;

test("400 adds of one content at a time are all answered, and it is stored once", async () => {
  await using host = await startRpc();
  const content = randomBytes(20_000);
  const before = await segmentBytes(host);
  const inUse = bytesInUse();
  const answers = await Promise.all(Array.from({ length: 400 }, () => call<Added>(host, "add?quieter=true", content)));
  const failed = answers.filter(({ status, message }) => status !== 200 || message !== undefined);
  assert.deepEqual(failed, []);
  const [cid, ...others] = new Set(answers.map(hashOf));
  assert.deepEqual(others, []);
  const grown = (await segmentBytes(host)) - before;
  assert.ok(grown < content.length + 1000, `${grown} bytes for ${content.length}`);
  answers.length = 0;
  await idle(host);
  await expectHeld(inUse, 48 * mebibyte);
  assert.deepEqual((await call(host, `cat?arg=${cid}`)).bytes, content);
  assert.deepEqual(
    (await call<{ Keys: object }>(host, `pin/ls?arg=${cid}`)).values.map(({ Keys }) => Keys),
    [{ [cid as string]: { Type: "recursive" } }],
  );
});

test("adds, pins, unpins and collections at a time lose nothing that was answered", async () => {
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
  const kept = new Map<string, Buffer>();
  const adders = Array.from({ length: 6 }, async (_, adder) => {
    for (let round = 0; round < 7; round += 1) {
      const content = Buffer.concat([randomBytes(300_000), Buffer.from(`${adder} ${round}`)]);
      const answer = await call<Added>(host, "add?quieter=true", content);
      assert.deepEqual([answer.status, answer.message], [200, undefined]);
      const cid = hashOf(answer) as string;
      if (round % 3 === 0) await call(host, `pin/rm?arg=${cid}`);
      else kept.set(cid, content);
    }
  });
  await Promise.all(adders);
  running = false;
  await collecting;
  assert.ok(collections > 1);
  for (const [cid, content] of kept) assert.ok((await call(host, `cat?arg=${cid}`)).bytes.equals(content), cid);
  await call(host, "repo/gc");
  const { values, message } = await call<{ Msg: string }>(host, "repo/verify");
  assert.deepEqual([message, values.at(-1)?.Msg], [undefined, "verify complete, all blocks validated."]);
  // Three blocks of each file, the directory that wraps it, and the one of a new repo at most.
  const { NumObjects } = (await call<{ NumObjects: number }>(host, "repo/stat")).values[0] as { NumObjects: number };
  assert.ok(NumObjects <= kept.size * 4 + 1, `${NumObjects} blocks for ${kept.size} files`);
});

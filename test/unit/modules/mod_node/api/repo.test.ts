import assert from "node:assert/strict";
import { test } from "node:test";
import { memoryNode } from "./support.ts";

test("a collection tells each block that it removed", async (t) => {
  const { block, repo } = await memoryNode(t);
  await block.put("kept", { format: "raw", pin: true });
  const loose = await block.put("loose", { format: "raw" });
  const [removed, ...others] = await Array.fromAsync(repo.gc());
  assert.deepEqual([String(removed?.cid), removed?.err, others], [String(loose), null, []]);
});

test("a collection fails in the end; failures are among its results on request", async (t) => {
  const { files, pin, repo, lowLevel } = await memoryNode(t);
  await files.write("/dir/file", "content", { create: true, parents: true });
  const { cid } = await files.stat("/dir");
  await pin.add(cid);
  await files.rm("/dir", { recursive: true });
  await lowLevel.blocks.store.delete([cid]);
  const first = `could not retrieve links for ${cid}: merkledag: not found`;
  const second = "garbage collection aborted: could not retrieve some links";
  await assert.rejects(Array.fromAsync(repo.gc()), { name: "NodeError", message: `${first}; ${second}` });
  const told: unknown[] = [];
  const collecting = async () => {
    for await (const { cid, err } of repo.gc({ streamErrors: true })) told.push(cid ?? err?.message);
  };
  await assert.rejects(collecting(), { message: "encountered errors during gc run" });
  assert.deepEqual(told, [first, second]);
});

test("the figures are big integers, and the size can be had alone", async (t) => {
  const { block, repo, config } = await memoryNode(t);
  const before = await repo.stat();
  await block.put("one more");
  const { numObjects, repoSize, repoPath, version, storageMax } = await repo.stat();
  assert.equal(numObjects, before.numObjects + 1n);
  assert.deepEqual([typeof repoSize, storageMax], ["bigint", 10_000_000_000n]);
  assert.ok(config.path.startsWith(repoPath));
  assert.equal(version, `fs-repo@${await repo.version()}`);
  assert.deepEqual(await repo.stat({ sizeOnly: true }), {
    numObjects: 0n,
    repoSize,
    repoPath: "",
    version: "",
    storageMax,
  });
  assert.deepEqual(await repo.fsck(), []);
});

test("a verification counts the blocks, and fails in the end when one is not what its CID says", async (t) => {
  const { block, repo, lowLevel } = await memoryNode(t);
  const cid = await block.put("sound", { format: "raw" });
  const whole = await Array.fromAsync(repo.verify());
  assert.deepEqual(whole.at(-1), { msg: "verify complete, all blocks validated.", progress: 0 });
  assert.equal(BigInt(whole.length - 1), (await repo.stat()).numObjects);
  await lowLevel.blocks.store.delete([cid]);
  await lowLevel.blocks.store.put([{ cid, bytes: Buffer.from("other") }]);
  await assert.rejects(Array.fromAsync(repo.verify()), { message: "verify complete, some blocks were corrupt" });
});

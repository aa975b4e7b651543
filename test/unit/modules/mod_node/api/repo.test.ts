import assert from "node:assert/strict";
import { describe, type TestContext, test } from "node:test";
import type { RepoVerifyOptions } from "modhost/node";
import { memoryNode } from "./support.ts";

test("a garbage collection reports each removed block", async (t) => {
  const { block, repo } = await memoryNode(t);
  await block.put("kept", { format: "raw", pin: true });
  const loose = await block.put("loose", { format: "raw" });
  const [removed, ...others] = await Array.fromAsync(repo.gc());
  assert.deepEqual([String(removed?.cid), removed?.err, others], [String(loose), null, []]);
});

test("a garbage collection fails at the end, or yields failures among its results on request", async (t) => {
  const { files, pin, repo, lowLevel } = await memoryNode(t);
  await files.write("/dir/file", "content", { create: true, parents: true });
  const { cid } = await files.stat("/dir");
  await pin.add(cid);
  await files.rm("/dir", { recursive: true });
  await lowLevel.blocks.store.delete([cid]);
  const first = `could not retrieve links for ${cid}: merkledag: not found`;
  const second = "garbage collection aborted: could not retrieve some links";
  await assert.rejects(Array.fromAsync(repo.gc()), { name: "NodeError", message: `${first}; ${second}` });
  const reported: unknown[] = [];
  const collecting = async () => {
    for await (const { cid, err } of repo.gc({ streamErrors: true })) reported.push(cid ?? err?.message);
  };
  await assert.rejects(collecting(), { message: "encountered errors during gc run" });
  assert.deepEqual(reported, [first, second]);
});

test("a garbage collection retains the blocks below a directory of the files, also when it and a directory inside it are pinned directly", async (t) => {
  const { files, pin, repo } = await memoryNode(t);
  await files.write("/dir/inner/file", "content", { create: true, parents: true });
  for (const path of ["/dir", "/dir/inner"]) await pin.add((await files.stat(path)).cid, { recursive: false });
  await Array.fromAsync(repo.gc());
  const read = await Array.fromAsync(files.read("/dir/inner/file"));
  assert.equal(Buffer.concat(read).toString(), "content");
});

test("repo statistics are big integers, and can be limited to the size", async (t) => {
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

test("a verification counts the blocks, and fails at the end if a block does not match its CID", async (t) => {
  const { block, repo, lowLevel } = await memoryNode(t);
  const cid = await block.put("sound", { format: "raw" });
  const whole = await Array.fromAsync(repo.verify());
  assert.deepEqual(whole.at(-1), { msg: "verify complete, all blocks validated.", progress: 0 });
  assert.equal(BigInt(whole.length - 1), (await repo.stat()).numObjects);
  await lowLevel.blocks.store.delete([cid]);
  await lowLevel.blocks.store.put([{ cid, bytes: Buffer.from("other") }]);
  await assert.rejects(Array.fromAsync(repo.verify()), { message: "verify complete, some blocks were corrupt" });
});

describe("a block that does not match its CID", () => {
  const broken = async (t: TestContext) => {
    const node = await memoryNode(t);
    const cid = await node.block.put("sound", { format: "raw" });
    const { store } = node.lowLevel.blocks;
    await store.delete([cid]);
    await store.put([{ cid, bytes: Buffer.from("other") }]);
    const lines = async (options: RepoVerifyOptions) =>
      (await Array.fromAsync(node.repo.verify(options))).flatMap(({ msg }) => (msg === "" ? [] : msg));
    return {
      ...node,
      cid,
      store,
      lines,
      text: `block ${cid} was corrupt (block in storage has different hash than requested)`,
    };
  };

  test("is removed on request", async (t) => {
    const { lines, store, cid, text } = await broken(t);
    assert.deepEqual(await lines({ drop: true }), [`${text}, removed`, "verify complete, 1 blocks corrupt, 1 removed"]);
    assert.equal(await store.has(cid), false);
    assert.deepEqual(await lines({ drop: true }), ["verify complete, all blocks validated."]);
  });

  test("is fetched again on request if a peer has it", async (t) => {
    const { lines, store, cid, text, lowLevel } = await broken(t);
    await assert.rejects(lines({ heal: true }), { code: "OFFLINE_COMMAND" });
    Object.defineProperty(lowLevel, "online", { value: true });
    lowLevel.blocks.get = async () => Buffer.from("sound");
    const counts = "verify complete, 1 blocks corrupt, 1 removed, 1 healed";
    assert.deepEqual(await lines({ heal: true }), [`${text}, removed, healed`, counts]);
    assert.equal(String(await store.get(cid)), "sound");
  });

  test("is removed, and the verification fails, if no peer sends it in time", async (t) => {
    const { lines, store, cid, lowLevel } = await broken(t);
    Object.defineProperty(lowLevel, "online", { value: true });
    lowLevel.blocks.get = async (_, { signal } = {}) => {
      await new Promise((_, reject) => signal?.addEventListener("abort", () => reject(signal.reason)));
      return new Uint8Array();
    };
    await assert.rejects(lines({ heal: true, healTimeout: 1 }), {
      code: "BLOCKS_CORRUPT",
      details: { counts: "verify complete, 1 blocks corrupt, 1 removed, 1 failed to heal" },
    });
    assert.equal(await store.has(cid), false);
    await assert.rejects(lines({ healTimeout: "x" }), { message: 'invalid heal-timeout: time: invalid duration "x"' });
    await assert.rejects(lines({ healTimeout: -1 }), { message: "heal-timeout must be >= 0" });
  });
});

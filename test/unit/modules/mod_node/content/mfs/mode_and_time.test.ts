/** The CIDs are those of Kubo 0.43 after the same calls. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { buildNode, cidOf, defaultCid } from "#node/content/unixfs/build.ts";
import { sha256 } from "#node/formats/cid/hashes.ts";
import { encodeUnixfs } from "#node/formats/unixfs/format.ts";
import { MemorySharedStore } from "#test/support/shared_hosts.ts";
import { TestNamespace } from "./test_namespace.ts";

const at = (seconds: number, nanoseconds = 0) => ({ seconds, nanoseconds });

test("mode and time of a file can be set and removed", async () => {
  const mfs = new TestNamespace();
  await mfs.write("/a", "aaa");
  const bare = String(await mfs.cid("/a"));
  await mfs.facts("/a", { mode: 0o644 });
  assert.equal(String(await mfs.cid("/a")), "Qmb8PWdPRbCjsppmbbZtoimbTpXUq2SSVvXDBdaG4hWT9e");
  await mfs.facts("/a", { mode: undefined });
  assert.equal(String(await mfs.cid("/a")), bare);
  for (const [mtime, cid] of [
    [at(1_630_937_926), "QmU8KM3RMFstXNdDsXYAvUVXA2esREcKZFT7gGyg2r7a1b"],
    [at(1_630_937_926, 42), "QmaJr4t1maMR9CcTCW1xqx6bxc4SwMkEKzqTZhGr1Fm7Rb"],
    [at(-5), "QmTnvNNgGqz36W6siCBXddvzgFifTfPzePLGYsNumN5w4P"],
  ] as const) {
    await mfs.facts("/a", { mtime });
    const stat = await mfs.stat("/a");
    assert.deepEqual([String(stat.cid), stat.mtime, stat.mode], [cid, mtime, undefined]);
  }
  await assert.rejects(mfs.facts("/none", { mode: 0o644 }), /file does not exist/);
});

test("mode and time of directories, of the root and of symlinks can be set and survive a crash", async () => {
  const mfs = new TestNamespace();
  await mfs.mkdir("/d");
  await mfs.facts("/d", { mode: 0o750, mtime: at(1_600_000_000) });
  assert.equal(String(await mfs.cid("/d")), "QmawWyy2JyrozuLyD4YFXu9FKX9YpHe4bGB94WsDsoBwpv");
  const link = { data: encodeUnixfs({ type: "Symlink", data: Buffer.from("d") }), links: [] };
  const { cid } = await buildNode(link, defaultCid, (block) => mfs.blocks.put([block]));
  await mfs.cp(cid, "/l");
  await mfs.facts("/l", { mode: 0o644, mtime: at(1_600_000_000) });
  assert.equal(String(await mfs.cid("/l")), "QmdYBfr5E1AoMcQSAjDGyV9BZobY827eTt1R33Ji1XemrN");
  await mfs.facts("/", { mode: 0o700 });
  await mfs.write("/d/x", "1");
  const root = await mfs.cid();
  mfs.crash();
  assert.equal(String(await mfs.cid()), String(root));
  const { mode, mtime } = await mfs.stat("/d");
  assert.deepEqual([mode, mtime], [0o750, at(1_600_000_000)]);
  assert.equal((await mfs.stat("/")).mode, 0o700);
});

test("a sharded directory has mode and time on its first shard", async () => {
  const mfs = new TestNamespace();
  mfs.sharded = true;
  await mfs.mkdir("/d");
  for (let count = 0; count < 300; count += 1) await mfs.write(`/d/${count}`, "x", { flush: false });
  const before = await mfs.stat("/d");
  await mfs.facts("/d", { mode: 0o700, mtime: at(1) });
  await mfs.rm("/d/7");
  await mfs.write("/d/7", "x");
  const after = await mfs.stat("/d");
  assert.deepEqual([after.mode, after.mtime], [0o700, at(1)]);
  assert.equal(after.cumulativeSize - before.cumulativeSize, 3 + 4);
  await mfs.facts("/d", { mode: undefined, mtime: undefined });
  assert.equal(String(await mfs.cid("/d")), String(before.cid));
});

test("copies and moves preserve mode and time, and new content only updates an existing time", async () => {
  const mfs = new TestNamespace();
  await mfs.write("/a", "aaa");
  await mfs.facts("/a", { mode: 0o600, mtime: at(1_600_000_000) });
  const cid = "QmcLPzB2on3mtdvEk685C5fwpEer5jHWZYnxpiJsh3pbfJ";
  await mfs.cp("/a", "/b");
  assert.equal(String(await mfs.cid("/b")), cid);
  await mfs.mv("/b", "/c");
  assert.equal(String(await mfs.cid("/c")), cid);
  await mfs.write("/c", "aaa");
  assert.equal(String(await mfs.cid("/c")), cid);
  const before = Math.floor(Date.now() / 1000);
  await mfs.write("/a", "more");
  const { mode, mtime } = await mfs.stat("/a");
  assert.equal(mode, 0o600);
  assert.ok(mtime !== undefined && mtime.seconds >= before - 1, String(mtime?.seconds));
  await mfs.facts("/c", { mtime: undefined });
  await mfs.write("/c", "more and more");
  assert.deepEqual((({ mode, mtime }) => [mode, mtime])(await mfs.stat("/c")), [0o600, undefined]);
});

test("a raw leaf with a mode becomes a node with the same bytes", async () => {
  const mfs = new TestNamespace();
  await mfs.write("/r", "raw", { rawLeaves: true });
  const raw = await buildRaw(mfs, "raw");
  await mfs.cp(raw, "/raw");
  await mfs.facts("/raw", { mode: 0o644 });
  assert.equal(String(await mfs.cid("/raw")), "QmYUpH4QwDUSHwDCYStgceMm5Gx5Y6s7FPcJ7BHZCKDut4");
  assert.equal(await mfs.read("/raw"), "raw");
});

test("a file with one raw leaf, and neither mode nor time, becomes that leaf on request", async () => {
  const mfs = new TestNamespace();
  const write = async (path: string, text: string, options: object) => {
    await mfs.write(path, text, { joinsLeaf: true, ...options });
    return String(await mfs.cid(path));
  };
  const one = { version: 1, hash: sha256 } as const;
  const abc = "bafkreif2pall7dybz7vecqka3zo24irdwabwdi4wc55jznaq75q7eaavvu";
  assert.equal(await write("/a", "abc", { settings: one }), abc);
  assert.equal(await write("/b", "abc", { rawLeaves: true }), abc);
  assert.equal(await write("/c", "abc", {}), "QmNnoLshJN3bw3zC4Z51JXMAEXBYxHvPtDBCF9NUd2YXEg");
  const two = "bafybeifddzmrahbcik3wc7a4jvzhnlebvod7pvekyf65u5la2vnkupmcum";
  assert.equal(await write("/a", "def", { offset: 3 }), two, "two leaves stay two");
  await mfs.facts("/b", { mode: 0o644 });
  assert.equal(
    await write("/b", "d", { rawLeaves: true, offset: 3 }),
    "QmShVfZRs7JECrx1gj5MUrFizPDTtff7bfpTEjDxcbfh8D",
  );
});

async function buildRaw(mfs: TestNamespace, text: string) {
  const bytes = Buffer.from(text);
  const cid = await cidOf(0x55, bytes, defaultCid);
  await mfs.blocks.put([{ cid, bytes }]);
  return cid;
}

test("several hosts with one tree see each other's modes and times", async () => {
  const shared = new MemorySharedStore();
  const join = async () => {
    const { blocks, metadata } = await shared.join();
    return new TestNamespace(blocks, metadata, true);
  };
  const one = await join();
  const other = await join();
  await one.mkdir("/d");
  await one.write("/d/f", "x");
  await Promise.all([one.facts("/d", { mode: 0o750 }), other.facts("/d", { mtime: at(5) })]);
  await other.facts("/d/f", { mode: 0o600 });
  for (const mfs of [one, other]) {
    const { mode, mtime } = await mfs.stat("/d");
    assert.deepEqual([mode, mtime], [0o750, at(5)]);
    assert.equal((await mfs.stat("/d/f")).mode, 0o600);
  }
  assert.equal(String(await one.cid()), String(await other.cid()));
});

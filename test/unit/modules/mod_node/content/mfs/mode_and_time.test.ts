/** CIDs are those that Kubo 0.43 has given after the same calls. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { buildNode, cidOf, defaultCid } from "#node/content/unixfs/build.ts";
import { sha256 } from "#node/formats/cid/hashes.ts";
import { encodeUnixfs } from "#node/formats/unixfs/format.ts";
import { MemorySharedStore } from "#test/support/shared_hosts.ts";
import { Place } from "./place.ts";

const at = (seconds: number, nanoseconds = 0) => ({ seconds, nanoseconds });

test("a file gets a mode and a time, and loses them", async () => {
  const place = new Place();
  await place.write("/a", "aaa");
  const bare = String(await place.cid("/a"));
  await place.facts("/a", { mode: 0o644 });
  assert.equal(String(await place.cid("/a")), "Qmb8PWdPRbCjsppmbbZtoimbTpXUq2SSVvXDBdaG4hWT9e");
  await place.facts("/a", { mode: undefined });
  assert.equal(String(await place.cid("/a")), bare);
  for (const [mtime, cid] of [
    [at(1_630_937_926), "QmU8KM3RMFstXNdDsXYAvUVXA2esREcKZFT7gGyg2r7a1b"],
    [at(1_630_937_926, 42), "QmaJr4t1maMR9CcTCW1xqx6bxc4SwMkEKzqTZhGr1Fm7Rb"],
    [at(-5), "QmTnvNNgGqz36W6siCBXddvzgFifTfPzePLGYsNumN5w4P"],
  ] as const) {
    await place.facts("/a", { mtime });
    const stat = await place.stat("/a");
    assert.deepEqual([String(stat.cid), stat.mtime, stat.mode], [cid, mtime, undefined]);
  }
  await assert.rejects(place.facts("/none", { mode: 0o644 }), /file does not exist/);
});

test("so do directories, the root and symlinks; they last through a crash", async () => {
  const place = new Place();
  await place.mkdir("/d");
  await place.facts("/d", { mode: 0o750, mtime: at(1_600_000_000) });
  assert.equal(String(await place.cid("/d")), "QmawWyy2JyrozuLyD4YFXu9FKX9YpHe4bGB94WsDsoBwpv");
  const link = { data: encodeUnixfs({ type: "Symlink", data: Buffer.from("d") }), links: [] };
  const { cid } = await buildNode(link, defaultCid, (block) => place.blocks.put([block]));
  await place.cp(cid, "/l");
  await place.facts("/l", { mode: 0o644, mtime: at(1_600_000_000) });
  assert.equal(String(await place.cid("/l")), "QmdYBfr5E1AoMcQSAjDGyV9BZobY827eTt1R33Ji1XemrN");
  await place.facts("/", { mode: 0o700 });
  await place.write("/d/x", "1");
  const root = await place.cid();
  place.crash();
  assert.equal(String(await place.cid()), String(root));
  const { mode, mtime } = await place.stat("/d");
  assert.deepEqual([mode, mtime], [0o750, at(1_600_000_000)]);
  assert.equal((await place.stat("/")).mode, 0o700);
});

test("a sharded directory has them on its first shard", async () => {
  const place = new Place();
  place.sharded = true;
  await place.mkdir("/d");
  for (let count = 0; count < 300; count += 1) await place.write(`/d/${count}`, "x", { flush: false });
  const before = await place.stat("/d");
  await place.facts("/d", { mode: 0o700, mtime: at(1) });
  await place.rm("/d/7");
  await place.write("/d/7", "x");
  const after = await place.stat("/d");
  assert.deepEqual([after.mode, after.mtime], [0o700, at(1)]);
  assert.equal(after.cumulativeSize - before.cumulativeSize, 3 + 4);
  await place.facts("/d", { mode: undefined, mtime: undefined });
  assert.equal(String(await place.cid("/d")), String(before.cid));
});

test("copies and moves keep them; other content changes the time of a file that has one, and nothing else", async () => {
  const place = new Place();
  await place.write("/a", "aaa");
  await place.facts("/a", { mode: 0o600, mtime: at(1_600_000_000) });
  const cid = "QmcLPzB2on3mtdvEk685C5fwpEer5jHWZYnxpiJsh3pbfJ";
  await place.cp("/a", "/b");
  assert.equal(String(await place.cid("/b")), cid);
  await place.mv("/b", "/c");
  assert.equal(String(await place.cid("/c")), cid);
  await place.write("/c", "aaa");
  assert.equal(String(await place.cid("/c")), cid);
  const before = Math.floor(Date.now() / 1000);
  await place.write("/a", "more");
  const { mode, mtime } = await place.stat("/a");
  assert.equal(mode, 0o600);
  assert.ok(mtime !== undefined && mtime.seconds >= before - 1, String(mtime?.seconds));
  await place.facts("/c", { mtime: undefined });
  await place.write("/c", "more and more");
  assert.deepEqual((({ mode, mtime }) => [mode, mtime])(await place.stat("/c")), [0o600, undefined]);
});

test("a raw leaf becomes a node that has its bytes", async () => {
  const place = new Place();
  await place.write("/r", "raw", { rawLeaves: true });
  const raw = await buildRaw(place, "raw");
  await place.cp(raw, "/raw");
  await place.facts("/raw", { mode: 0o644 });
  assert.equal(String(await place.cid("/raw")), "QmYUpH4QwDUSHwDCYStgceMm5Gx5Y6s7FPcJ7BHZCKDut4");
  assert.equal(await place.read("/raw"), "raw");
});

test("a file with one raw leaf, and neither mode nor time, is that leaf where this is asked for", async () => {
  const place = new Place();
  const write = async (path: string, text: string, options: object) => {
    await place.write(path, text, { joinsLeaf: true, ...options });
    return String(await place.cid(path));
  };
  const one = { version: 1, hash: sha256 } as const;
  const abc = "bafkreif2pall7dybz7vecqka3zo24irdwabwdi4wc55jznaq75q7eaavvu";
  assert.equal(await write("/a", "abc", { settings: one }), abc);
  assert.equal(await write("/b", "abc", { rawLeaves: true }), abc);
  assert.equal(await write("/c", "abc", {}), "QmNnoLshJN3bw3zC4Z51JXMAEXBYxHvPtDBCF9NUd2YXEg");
  const two = "bafybeifddzmrahbcik3wc7a4jvzhnlebvod7pvekyf65u5la2vnkupmcum";
  assert.equal(await write("/a", "def", { offset: 3 }), two, "two leaves stay two");
  await place.facts("/b", { mode: 0o644 });
  assert.equal(
    await write("/b", "d", { rawLeaves: true, offset: 3 }),
    "QmShVfZRs7JECrx1gj5MUrFizPDTtff7bfpTEjDxcbfh8D",
  );
});

async function buildRaw(place: Place, text: string) {
  const bytes = Buffer.from(text);
  const cid = await cidOf(0x55, bytes, defaultCid);
  await place.blocks.put([{ cid, bytes }]);
  return cid;
}

test("several hosts of one tree see each other's modes and times", async () => {
  const shared = new MemorySharedStore();
  const join = async () => {
    const { blocks, metadata } = await shared.join();
    return new Place(blocks, metadata, true);
  };
  const one = await join();
  const other = await join();
  await one.mkdir("/d");
  await one.write("/d/f", "x");
  await Promise.all([one.facts("/d", { mode: 0o750 }), other.facts("/d", { mtime: at(5) })]);
  await other.facts("/d/f", { mode: 0o600 });
  for (const place of [one, other]) {
    const { mode, mtime } = await place.stat("/d");
    assert.deepEqual([mode, mtime], [0o750, at(5)]);
    assert.equal((await place.stat("/d/f")).mode, 0o600);
  }
  assert.equal(String(await one.cid()), String(await other.cid()));
});

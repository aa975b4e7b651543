import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { open, readFile as readWhole, stat, statfs } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { openFile, readFile } from "modhost/node";
import { bytes, MountPlace, skip } from "./support.ts";

const mebibyte = 2 ** 20;
/** MiB of the large file: MODHOST_MOUNT_MIB=500 is the long form. */
const large = Number(process.env.MODHOST_MOUNT_MIB ?? 64);
const small = 1000;

const contentOf = (at: number): string => `file ${at}\n`.repeat(1 + (at % 400));

/** Bytes that differ everywhere, the same each time. */
async function* noise(mebibytes: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < mebibytes; at += 1) {
    yield createHash("shake256", { outputLength: mebibyte }).update(String(at)).digest();
  }
}

describe("contents, read by other processes", { skip }, () => {
  let place: MountPlace;
  let root: string;

  before(async () => {
    place = await MountPlace.make();
    await place.mount();
    const files = Array.from({ length: small }, (_, at) => [`d${at % 10}/f${at}`, bytes(contentOf(at))] as const);
    root = await place.add([...files, ["large", noise(large)], ["empty", bytes("")]]);
  });
  after(() => place[Symbol.asyncDispose]());

  test("the root can be passed through and not be listed", async () => {
    assert.equal((await stat(place.ipfs)).mode & 0o777, 0o111);
    await assert.rejects(place.shell("ls ipfs"), /Operation not permitted/);
    await assert.rejects(place.shell("cat ipfs/nonsense"), /No such file/);
    // Nothing of that CID is here.
    await assert.rejects(place.shell("cat ipfs/QmYwAPJzv5CZsnA625s3Xf2nemtYgPpHdWEz79ojWnPbdG"), /No such file/);
  });

  test("ls -l tells kinds, rights and sizes", async () => {
    const lines = (await place.shell(`ls -l ipfs/${root}`)).trimEnd().split("\n").slice(1);
    const rows = lines.map((line) => line.split(/ +/));
    assert.deepEqual(
      rows.map(([mode, , , , size, , , , name]) => [mode, size, name]),
      [
        ...Array.from({ length: 10 }, (_, at) => ["dr-xr-xr-x", "0", `d${at}`]),
        ["-r--r--r--", "0", "empty"],
        ["-r--r--r--", String(large * mebibyte), "large"],
      ],
    );
    assert.equal(await place.shell(`cat ipfs/${root}/empty`), "");
    assert.equal(await place.shell(`cat ipfs/${root}/d7/f37`), contentOf(37));
  });

  test("nothing can be written", async () => {
    await assert.rejects(place.shell(`touch ipfs/${root}/new`), /Read-only file system/);
    await assert.rejects(place.shell(`rm -f ipfs/${root}/empty`), /Read-only file system/);
  });

  test("cp -r takes a tree of a thousand files", async () => {
    await place.shell(`mkdir copy; cp -r ipfs/${root}/d* copy`);
    for (let at = 0; at < small; at += 1) {
      assert.equal(await readWhole(join(place.folder, `copy/d${at % 10}/f${at}`), "utf8"), contentOf(at));
    }
    assert.equal((await place.shell("find copy -type f | wc -l")).trim(), String(small));
  });

  test("a large file has the bytes that the node has, for readers in a row and for several at once", async () => {
    const read = place.node.reader();
    const { cid } = await place.node.resolve(`/ipfs/${root}/large`);
    const own = createHash("sha256");
    for await (const piece of readFile(await openFile(cid, read), read)) own.update(piece);
    const expected = own.digest("hex");
    // The second reader meets another name of the file, and the first's cache: the others begin
    // elsewhere.
    const [first, ...others] = await Promise.all([
      place.shell(`sha256sum ipfs/${root}/large`),
      place.shell(`sha256sum < ipfs/${cid}`),
      place.shell(`tail -c 3000001 ipfs/${root}/large | sha256sum`),
      place.shell(`dd if=ipfs/${cid} bs=77777 skip=100 count=50 status=none | sha256sum`),
    ]);
    const part = async (offset: number, length: number) => {
      const digest = createHash("sha256");
      for await (const piece of readFile(await openFile(cid, read), read, { offset, length })) digest.update(piece);
      return digest.digest("hex");
    };
    assert.equal(first?.slice(0, 64), expected);
    assert.deepEqual(
      others.map((line) => line.slice(0, 64)),
      [expected, await part(large * mebibyte - 3000001, 3000001), await part(7777700, 77777 * 50)],
    );
  });

  test("random reads give what is there", async () => {
    const read = place.node.reader();
    const { cid } = await place.node.resolve(`/ipfs/${root}/large`);
    const tree = await openFile(cid, read);
    // Without the cache of the kernel.
    await place.shell("echo 1 > /proc/sys/vm/drop_caches").catch(() => undefined);
    const places = Array.from({ length: 60 }, (_, at) => (at * 7_654_321) % (large * mebibyte));
    const script = places.map((at) => `dd if=ipfs/${cid} bs=1 skip=${at} count=100 status=none`).join("\n");
    const expected: Uint8Array[] = [];
    for (const offset of places) {
      for await (const piece of readFile(tree, read, { offset, length: 100 })) expected.push(Buffer.from(piece));
    }
    const got = await place.shell(`{ ${script}; } | sha256sum`);
    assert.equal(got.slice(0, 64), createHash("sha256").update(Buffer.concat(expected)).digest("hex"));
  });

  test("sharded directories are directories like others, symlinks lead where they say", async () => {
    const many = Array.from({ length: 600 }, (_, at) => [`file ${at}`, bytes(String(at))] as const);
    const sharded = await place.add(many, true);
    assert.equal((await place.shell(`ls ipfs/${sharded} | wc -l`)).trim(), "600");
    assert.equal(await place.shell(`cat "ipfs/${sharded}/file 599"`), "599");
    await assert.rejects(place.shell(`cat "ipfs/${sharded}/file 600"`), /No such file/);
    await place.shell(`mkdir ipns/local/l; ln -s ../target ipns/local/l/link; echo there > ipns/local/target`);
    assert.equal(await place.shell("readlink ipns/local/l/link; cat ipns/local/l/link"), "../target\nthere\n");
  });

  test("ten thousand files are open at the same time", async () => {
    const limit = Number((await place.shell("ulimit -Sn")).trim());
    const count = Math.min(10_000, limit - 100);
    const script = `
import os
at = [os.open("ipfs/${root}/d%d/f%d" % (n % 10, n % ${small}), os.O_RDONLY) for n in range(${count})]
print(sum(os.fstat(one).st_size > 0 and len(os.pread(one, 4, 0)) for one in at))`;
    assert.equal((await place.shell(`python3 -c '${script}'`)).trim(), String(4 * count));
  });

  test("the file system tells that it is full", async () => {
    const { bfree, type } = await statfs(place.ipfs);
    assert.deepEqual([bfree, type], [0, 0x65735546]);
  });

  test("a read that is cancelled ends at once, and the mount goes on", async () => {
    const { blocks } = place.node;
    const asked = Promise.withResolvers<void>();
    const left = Promise.withResolvers<void>();
    const source = {
      fetch: (_: unknown, signal: AbortSignal | undefined) =>
        new Promise<Uint8Array>((_resolve, reject) => {
          signal?.addEventListener("abort", () => {
            left.resolve();
            reject(signal.reason);
          });
          asked.resolve();
        }),
    };
    blocks.source = source;
    try {
      const reading = place.shell("timeout -s INT 1 cat ipfs/QmYwAPJzv5CZsnA625s3Xf2nemtYgPpHdWEz79ojWnPbdG");
      await asked.promise;
      await assert.rejects(reading, (error: { code?: number }) => error.code === 124);
      await left.promise;
    } finally {
      blocks.source = undefined;
    }
    assert.equal(await place.shell(`cat ipfs/${root}/d1/f1`), contentOf(1));
  });

  test("a file handle that stays open cuts nobody off but its own user when the node is closed", async () => {
    const handle = await open(join(place.ipfs, root, "d1/f1"));
    try {
      await place.close();
      assert.deepEqual(await place.mounted(), []);
    } finally {
      await handle.close();
    }
  });
});

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { open, readFile as readWhole, stat, statfs } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { openFile, readFile } from "modhost/node";
import { bytes, MountFixture, skip } from "./support.ts";

const mebibyte = 2 ** 20;
/** Size of the large file in MiB. MODHOST_MOUNT_MIB=500 runs the long form of the test. */
const large = Number(process.env.MODHOST_MOUNT_MIB ?? 64);
const small = 1000;

const contentOf = (at: number): string => `file ${at}\n`.repeat(1 + (at % 400));

/** Yields bytes without repetitions, the same in each run. */
async function* noise(mebibytes: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < mebibytes; at += 1) {
    yield createHash("shake256", { outputLength: mebibyte }).update(String(at)).digest();
  }
}

describe("the /ipfs mount, used by other processes", { skip }, () => {
  let fixture: MountFixture;
  let root: string;

  before(async () => {
    fixture = await MountFixture.make();
    await fixture.mount();
    const files = Array.from({ length: small }, (_, at) => [`d${at % 10}/f${at}`, bytes(contentOf(at))] as const);
    root = await fixture.add([...files, ["large", noise(large)], ["empty", bytes("")]]);
  });
  after(() => fixture[Symbol.asyncDispose]());

  test("allows access to the entries of its root, but does not list them", async () => {
    assert.equal((await stat(fixture.ipfs)).mode & 0o777, 0o111);
    await assert.rejects(fixture.shell("ls ipfs"), /Operation not permitted/);
    await assert.rejects(fixture.shell("cat ipfs/nonsense"), /No such file/);
    // No block of this CID exists here.
    await assert.rejects(fixture.shell("cat ipfs/QmYwAPJzv5CZsnA625s3Xf2nemtYgPpHdWEz79ojWnPbdG"), /No such file/);
  });

  test("shows kinds, permissions and sizes in ls -l", async () => {
    const lines = (await fixture.shell(`ls -l ipfs/${root}`)).trimEnd().split("\n").slice(1);
    const rows = lines.map((line) => line.split(/ +/));
    assert.deepEqual(
      rows.map(([mode, , , , size, , , , name]) => [mode, size, name]),
      [
        ...Array.from({ length: 10 }, (_, at) => ["dr-xr-xr-x", "0", `d${at}`]),
        ["-r--r--r--", "0", "empty"],
        ["-r--r--r--", String(large * mebibyte), "large"],
      ],
    );
    assert.equal(await fixture.shell(`cat ipfs/${root}/empty`), "");
    assert.equal(await fixture.shell(`cat ipfs/${root}/d7/f37`), contentOf(37));
  });

  test("rejects writes", async () => {
    await assert.rejects(fixture.shell(`touch ipfs/${root}/new`), /Read-only file system/);
    await assert.rejects(fixture.shell(`rm -f ipfs/${root}/empty`), /Read-only file system/);
  });

  test("can be copied by cp -r, with a tree of a thousand files", async () => {
    await fixture.shell(`mkdir copy; cp -r ipfs/${root}/d* copy`);
    for (let at = 0; at < small; at += 1) {
      assert.equal(await readWhole(join(fixture.folder, `copy/d${at % 10}/f${at}`), "utf8"), contentOf(at));
    }
    assert.equal((await fixture.shell("find copy -type f | wc -l")).trim(), String(small));
  });

  test("returns the bytes of a large file to sequential and concurrent readers", async () => {
    const read = fixture.node.reader();
    const { cid } = await fixture.node.resolve(`/ipfs/${root}/large`);
    const own = createHash("sha256");
    for await (const piece of readFile(await openFile(cid, read), read)) own.update(piece);
    const expected = own.digest("hex");
    // The second reader uses another name of the file, and the cache of the first. The others begin
    // at other offsets.
    const [first, ...others] = await Promise.all([
      fixture.shell(`sha256sum ipfs/${root}/large`),
      fixture.shell(`sha256sum < ipfs/${cid}`),
      fixture.shell(`tail -c 3000001 ipfs/${root}/large | sha256sum`),
      fixture.shell(`dd if=ipfs/${cid} bs=77777 skip=100 count=50 status=none | sha256sum`),
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

  test("returns the right bytes for random reads", async () => {
    const read = fixture.node.reader();
    const { cid } = await fixture.node.resolve(`/ipfs/${root}/large`);
    const tree = await openFile(cid, read);
    // Without the kernel's cache.
    await fixture.shell("echo 1 > /proc/sys/vm/drop_caches").catch(() => undefined);
    const offsets = Array.from({ length: 60 }, (_, at) => (at * 7_654_321) % (large * mebibyte));
    const script = offsets.map((at) => `dd if=ipfs/${cid} bs=1 skip=${at} count=100 status=none`).join("\n");
    const expected: Uint8Array[] = [];
    for (const offset of offsets) {
      for await (const piece of readFile(tree, read, { offset, length: 100 })) expected.push(Buffer.from(piece));
    }
    const got = await fixture.shell(`{ ${script}; } | sha256sum`);
    assert.equal(got.slice(0, 64), createHash("sha256").update(Buffer.concat(expected)).digest("hex"));
  });

  test("shows sharded directories like others, and symlinks with their targets", async () => {
    const many = Array.from({ length: 600 }, (_, at) => [`file ${at}`, bytes(String(at))] as const);
    const sharded = await fixture.add(many, true);
    assert.equal((await fixture.shell(`ls ipfs/${sharded} | wc -l`)).trim(), "600");
    assert.equal(await fixture.shell(`cat "ipfs/${sharded}/file 599"`), "599");
    await assert.rejects(fixture.shell(`cat "ipfs/${sharded}/file 600"`), /No such file/);
    await fixture.shell(`mkdir ipns/local/l; ln -s ../target ipns/local/l/link; echo there > ipns/local/target`);
    assert.equal(await fixture.shell("readlink ipns/local/l/link; cat ipns/local/l/link"), "../target\nthere\n");
  });

  test("supports ten thousand open files", async () => {
    const limit = Number((await fixture.shell("ulimit -Sn")).trim());
    const count = Math.min(10_000, limit - 100);
    const script = `
import os
at = [os.open("ipfs/${root}/d%d/f%d" % (n % 10, n % ${small}), os.O_RDONLY) for n in range(${count})]
print(sum(os.fstat(one).st_size > 0 and len(os.pread(one, 4, 0)) for one in at))`;
    assert.equal((await fixture.shell(`python3 -c '${script}'`)).trim(), String(4 * count));
  });

  test("reports no free space", async () => {
    const { bfree, type } = await statfs(fixture.ipfs);
    assert.deepEqual([bfree, type], [0, 0x65735546]);
  });

  test("ends a cancelled read at once, and continues", async () => {
    const { blocks } = fixture.node;
    const requested = Promise.withResolvers<void>();
    const left = Promise.withResolvers<void>();
    const source = {
      fetch: (_: unknown, signal: AbortSignal | undefined) =>
        new Promise<Uint8Array>((_resolve, reject) => {
          signal?.addEventListener("abort", () => {
            left.resolve();
            reject(signal.reason);
          });
          requested.resolve();
        }),
    };
    blocks.source = source;
    try {
      const reading = fixture.shell("timeout -s INT 1 cat ipfs/QmYwAPJzv5CZsnA625s3Xf2nemtYgPpHdWEz79ojWnPbdG");
      await requested.promise;
      await assert.rejects(reading, (error: { code?: number }) => error.code === 124);
      await left.promise;
    } finally {
      blocks.source = undefined;
    }
    assert.equal(await fixture.shell(`cat ipfs/${root}/d1/f1`), contentOf(1));
  });

  test("unmounts at the close of the node although a file is open", async () => {
    const handle = await open(join(fixture.ipfs, root, "d1/f1"));
    try {
      await fixture.close();
      assert.deepEqual(await fixture.mounted(), []);
    } finally {
      await handle.close();
    }
  });
});

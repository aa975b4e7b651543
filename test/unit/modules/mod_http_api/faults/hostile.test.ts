import assert from "node:assert/strict";
import { request } from "node:http";
import { after, before, describe, test } from "node:test";
import { CID } from "multiformats/cid";
import type { PbLink } from "#node/formats/dag_pb/dag_pb.ts";
import type { Unixfs } from "#node/formats/unixfs/format.ts";
import { memoryBlocks } from "#node/storage/blockstore/memory.ts";
import { memoryMetadata } from "#node/storage/metadata/memory.ts";
import { eventually } from "#test/support/eventually.ts";
import {
  bytesInUse,
  call,
  doubledDirectory,
  doubledFile,
  expectGrowthBelow,
  idle,
  isIdle,
  keep,
  type Lab,
  link,
  type Made,
  rawBlock,
  startLab,
  tower,
  treeBlock,
  watch,
} from "./lab.ts";

const mebibyte = 1024 * 1024;

let host: Lab;
before(async () => {
  host = await startLab(async () => ({ blocks: memoryBlocks(), metadata: memoryMetadata() }));
});
after(() => host?.stop());

const put = (made: readonly Made[]) => keep(host.node, made);

/** Makes a call that must succeed, and returns its values. */
async function values<T>(path: string): Promise<readonly T[]> {
  const { status, message, values } = await call<T>(host, path);
  assert.deepEqual([status, message], [200, undefined]);
  return values;
}

describe("40 levels of doubled links", () => {
  const files = doubledFile(rawBlock(Buffer.alloc(256 * 1024, "doubled")));
  const directories = doubledDirectory(rawBlock("foot"));
  let file: string;
  let directory: string;
  before(async () => {
    file = await put(files);
    directory = await put(directories);
  });

  test("doubled links are pinned, verified, listed and collected with one visit to each block", async () => {
    for (const root of [file, directory]) {
      assert.deepEqual(await values(`pin/add?arg=${root}`), [{ Pins: [root] }]);
      const verified = await values<{ Cid: string; Ok: boolean }>("pin/verify?verbose=true");
      assert.equal(verified.find(({ Cid }) => Cid === root)?.Ok, true);
      const [{ Keys }] = (await values("pin/ls?type=indirect")) as [{ Keys: object }];
      assert.equal(Object.keys(Keys).length, 40);
      assert.equal((await values(`refs?arg=${root}&recursive=true&unique=true`)).length, 40);
      const removed = (await values<{ Key: { "/": string } }>("repo/gc")).map(({ Key }) => Key["/"]);
      assert.equal(removed.length, 41);
      await values(`pin/rm?arg=${root}`);
      await put(files);
      await put(directories);
    }
  });

  test("doubled links are one level for ls", async () => {
    const [{ Objects }] = (await values(`ls?arg=${directory}`)) as [{ Objects: { Links: { Name: string }[] }[] }];
    assert.deepEqual(
      Objects[0]?.Links.map(({ Name }) => Name),
      ["a", "b"],
    );
  });

  for (const [command, root, bytes] of [
    ["cat", () => file, 8 * mebibyte],
    ["get", () => file, 8 * mebibyte],
    ["get", () => directory, mebibyte],
    ["refs", () => `${directory}&recursive=true`, mebibyte / 2],
  ] as const) {
    test(`doubled links stream through ${command} endlessly, until the client disconnects`, async () => {
      const before = bytesInUse();
      const { reply: response, read, leave } = await watch(host, `${command}?arg=${root()}`);
      assert.equal(response.statusCode, 200);
      assert.ok((await read(bytes)).length >= bytes);
      leave();
      await idle(host);
      await expectGrowthBelow(before, bytes + 16 * mebibyte);
    });
  }

  test("a walk through doubled links ends with the timeout", async () => {
    const { values } = await call(host, `refs?arg=${directory}&recursive=true&timeout=100ms`);
    assert.deepEqual(values.at(-1), { Ref: "", Err: "context deadline exceeded" });
  });
});

describe("40 levels of doubled links without bytes", () => {
  const towerOf = (sizes: (level: number) => Pick<Unixfs, "filesize" | "blocksizes">) =>
    tower(rawBlock(""), 40, (below, level) =>
      treeBlock({ type: "File", ...sizes(level) }, [link("", below, 100), link("", below, 100)]),
    );
  const roots: Record<string, string> = {};
  before(async () => {
    const lie = (level: number) => ({ filesize: 2 ** level, blocksizes: [2 ** (level - 1), 2 ** (level - 1)] });
    roots["that lie about their sizes"] = await put(towerOf(lie));
    roots["that say no sizes"] = await put(towerOf(() => ({ filesize: 100 })));
  });

  for (const name of ["that lie about their sizes", "that say no sizes"]) {
    for (const command of ["cat?", "get?", "get?compress=true&"]) {
      test(`doubled links ${name} end with the timeout in ${command}`, async () => {
        const { message } = await call(host, `${command}arg=${roots[name]}&timeout=100ms`);
        assert.equal(message, "context deadline exceeded");
        await idle(host);
      });

      test(`doubled links ${name} end when the client of ${command} disconnects`, async () => {
        const path = `/api/v0/${command}arg=${roots[name]}`;
        const sent = request({ host: "127.0.0.1", port: host.http, path, method: "POST", agent: false });
        sent.on("error", () => undefined).end();
        await eventually("the command runs", async () => !(await isIdle(host)));
        sent.destroy();
        await idle(host);
      });
    }
  }
});

test("a file 15,000 levels deep, deeper than any stack, is pinned and read", async () => {
  const above = (below: Made) => treeBlock({ type: "File", filesize: 1, blocksizes: [1] }, [link("", below)]);
  const root = await put(tower(rawBlock("x"), 15_000, above));
  assert.deepEqual(await values(`pin/add?arg=${root}`), [{ Pins: [root] }]);
  assert.equal((await call(host, `cat?arg=${root}`)).text, "x");
  await values(`pin/rm?arg=${root}`);
});

test("directories 5,000 levels deep are listed, kept by a collection, and packed until the client disconnects", async () => {
  const above = (below: Made) => treeBlock({ type: "Directory" }, [link("d", below)]);
  const root = await put(tower(rawBlock("x"), 5000, above));
  await values(`pin/add?arg=${root}`);
  await values("repo/gc");
  assert.equal((await values(`refs?arg=${root}&recursive=true`)).length, 5000);
  const before = bytesInUse();
  const { read, leave } = await watch(host, `get?arg=${root}`);
  assert.ok((await read(8 * mebibyte)).length >= 8 * mebibyte);
  leave();
  await idle(host);
  await expectGrowthBelow(before, 24 * mebibyte);
});

test("a sharded directory whose shards are linked twice is listed once", async () => {
  const shard = (links: readonly PbLink[]) =>
    treeBlock({ type: "HAMTShard", data: Uint8Array.of(3), hashType: 0x22, fanout: 256 }, links);
  const foot = rawBlock("entry");
  const shards = tower(shard([link("00entry", foot)]), 40, (below) => shard([link("00", below), link("01", below)]));
  const root = await put([foot, ...shards]);
  const [listed] = await values<{ Objects: { Links: { Name: string }[] }[] }>(`ls?arg=${root}`);
  assert.deepEqual(
    listed?.Objects[0]?.Links.map(({ Name }) => Name),
    ["entry"],
  );
  const { status } = await call(host, `get?arg=${root}`);
  assert.equal(status, 200);
});

describe("a file with wrong sizes", () => {
  const leaf = rawBlock("hello world");
  const most = Number.MAX_SAFE_INTEGER;
  const files: [what: string, unixfs: Omit<Unixfs, "type">, tsize: number][] = [
    ["too large", { filesize: 2 ** 60, blocksizes: [2 ** 59, 2 ** 59] }, 2 ** 60],
    ["too small", { filesize: 4, blocksizes: [2, 2] }, 0],
    ["of nothing", { filesize: 0, blocksizes: [0, 0] }, 1],
    ["missing", {}, 1],
    ["at odds with each other", { filesize: most, blocksizes: [1, most] }, most],
  ];
  for (const [what, unixfs, tsize] of files) {
    test(`${what}: every reader terminates`, async () => {
      const root = treeBlock({ type: "File", ...unixfs }, [link("", leaf, tsize), link("", leaf, tsize)]);
      const folder = treeBlock({ type: "Directory" }, [link("f", root, tsize)]);
      await put([leaf, root]);
      const directory = await put([folder]);
      for (const path of [
        `cat?arg=${root.cid}`,
        `cat?arg=${root.cid}&offset=8`,
        `cat?arg=${root.cid}&offset=1&length=3`,
        `get?arg=${directory}`,
        `ls?arg=${directory}`,
        `file/ls?arg=${directory}`,
        `refs?arg=${directory}&recursive=true`,
        `pin/add?arg=${directory}`,
      ]) {
        const { status, text } = await call(host, path);
        assert.ok(status === 200 || status === 500, `${path}: ${status}`);
        assert.ok(text.length < 64 * 1024);
      }
      assert.deepEqual(host.faults, []);
    });
  }
});

const readers = ["cat", "get", "ls", "refs", "pin/add", "file/ls"];

test("a block that its codec cannot decode fails the call with a message", async () => {
  const { cid } = treeBlock({ type: "File" }, []);
  await put([{ cid, bytes: Buffer.from([0x12, 0xff, 0x01, 0x20]) }]);
  for (const command of readers) {
    const { message, values } = await call<{ Err?: string }>(host, `${command}?arg=${cid}`);
    assert.match(message ?? values[0]?.Err ?? "", /unexpected EOF/, command);
  }
  assert.deepEqual(host.faults, []);
});

test("a block of 200,000 nested lists crashes neither the process nor the next call", async () => {
  const bytes = Buffer.concat([Buffer.alloc(200_000, 0x81), Buffer.from([0])]);
  const root = await put([{ cid: CID.createV1(0x71, rawBlock(bytes).cid.multihash), bytes }]);
  for (const command of readers) {
    const { status } = await call(host, `${command}?arg=${root}`);
    assert.ok(status === 200 || status === 500, `${command}: ${status}`);
  }
  assert.deepEqual(host.faults, []);
  assert.equal((await call(host, "version")).status, 200);
});

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { test } from "node:test";
import { type AddEntry, addEntries, addSettings, memoryStores } from "modhost/node";
import { parseCid } from "#node/formats/cid/text.ts";
import type { LowLevelNode } from "#node/node/low_level_node.ts";
import { openNode } from "#node/node/open.ts";
import { memoryBlocks } from "#node/storage/blockstore/memory.ts";
import { memoryMetadata } from "#node/storage/metadata/memory.ts";
import { emptyFolder } from "./storage/repo/support.ts";

const emptyDirectory = "QmUNLLsPACCz1vLxQVkXqqLX5R1X345qqfHbsf67hvA3Nn";

async function pinned(node: LowLevelNode): Promise<string[]> {
  return (await Array.fromAsync(node.pins.list("recursive"))).map(String);
}

test("a new repo holds the empty directory, pinned; unpinned, it stays so", async (t) => {
  const repo = await emptyFolder(t);
  const node = await openNode({ repo });
  assert.deepEqual(await pinned(node), [emptyDirectory]);
  assert.equal(Buffer.from(await node.reader()(parseCid(emptyDirectory))).toString("hex"), "0a020801");
  const { blocks, bytes, storageMax } = await node.stat();
  assert.deepEqual([blocks, storageMax], [1, 10_000_000_000]);
  assert.ok(bytes > 0);
  assert.equal(node.online, false);
  await node.pins.remove(parseCid(emptyDirectory), true);
  await node.close();
  await node.close();

  const again = await openNode({ repo });
  assert.deepEqual(await pinned(again), []);
  assert.equal(again.repo.isNew, false);
  await again.close();
  assert.equal((await readdir(repo)).includes("repo.lock"), false);
});

test("a new repo keeps to this machine unless somebody asks for more", async (t) => {
  const made = async (options: { profile?: string; document?: string }) => {
    await using node = await openNode({ repo: await emptyFolder(t), ...options });
    const { config, path } = node.repo;
    const document = await readFile(join(path, "config"), "utf8");
    return { document, swarm: config.value("Addresses.Swarm"), bootstrap: config.value("Bootstrap")?.length };
  };
  const usual = await made({});
  assert.deepEqual([usual.swarm, usual.bootstrap], [["/ip4/127.0.0.1/tcp/0"], 0]);
  const reference = await made({ profile: "" });
  assert.equal(reference.swarm?.[0], "/ip4/0.0.0.0/tcp/4001");
  assert.ok(Number(reference.bootstrap) > 0);
  const { swarm } = await made({ document: reference.document });
  assert.deepEqual(swarm, reference.swarm);
});

test("a node is closed at the end of its block", async (t) => {
  const repo = await emptyFolder(t);
  {
    await using node = await openNode({ repo });
    assert.equal(node.repo.isNew, true);
  }
  await (await openNode({ repo })).close();
});

test("options that are none are a TypeError, and no folder is made", async (t) => {
  const create = openNode as (options?: unknown) => Promise<LowLevelNode>;
  const wanted = { name: "TypeError", message: 'createNode takes { repo: "FOLDER" }' };
  for (const options of [undefined, null, {}, "repo", { repo: "" }, { dir: "repo" }]) {
    await assert.rejects(create(options), wanted, JSON.stringify(options));
  }
  const repo = await emptyFolder(t);
  await assert.rejects(create({ repo, ofline: true }), {
    name: "TypeError",
    message: /^createNode has no option ofline; it has repo, /,
  });
  assert.deepEqual(await readdir(repo), []);
});

test("an added entry has a path, a kind and a body", async (t) => {
  await using node = await openNode({ repo: await emptyFolder(t), stores: async () => memoryStores() });
  const added = (entry: object) =>
    Array.fromAsync(
      addEntries(
        node,
        (async function* () {
          yield entry as AddEntry;
        })(),
        addSettings({}),
        { pin: false },
      ),
    );
  await assert.rejects(added({ content: "x" }), { message: "an entry needs a path" });
  await assert.rejects(added({ path: "x", content: "x" }), {
    message: "the entry x needs a kind: file, directory or symlink",
  });
  await assert.rejects(added({ path: "x", kind: "file", content: "x" }), {
    message: "the entry x needs a body: an async iterable of bytes",
  });
  assert.equal(String((await added({ path: "x", kind: "directory" }))[0]?.built?.cid), emptyDirectory);
});

test("added blocks are reported to those who wait for them, also with a filestore", async (t) => {
  const overrides = { "Experimental.FilestoreEnabled": true };
  const repo = await emptyFolder(t);
  await using node = await openNode({ repo, overrides, stores: async () => memoryStores() });
  const reported: string[] = [];
  node.blocks.onStored = (blocks) => reported.push(...blocks.map(({ cid }) => cid.toString()));
  const entries = async function* (): AsyncGenerator<AddEntry> {
    yield { path: "x", kind: "directory", body: Readable.from([]) };
  };
  for (const references of [false, true]) {
    reported.length = 0;
    await Array.fromAsync(addEntries(node, entries(), addSettings({}), { pin: true, references }));
    assert.deepEqual(reported, [emptyDirectory], `references: ${references}`);
  }
});

test("paths are resolved; names only where there is somebody to ask", async (t) => {
  const node = await openNode({ repo: await emptyFolder(t) });
  t.after(() => node.close());
  const { cid, namespace, remainder } = await node.resolve(emptyDirectory);
  assert.deepEqual([String(cid), namespace, remainder], [emptyDirectory, "ipfs", []]);
  await assert.rejects(node.resolve(`/ipfs/${emptyDirectory}/x`), {
    code: "NO_LINK",
    message: `no link named "x" under ${emptyDirectory}`,
  });
  await assert.rejects(node.resolve("/x/y"), {
    code: "INVALID_PATH",
    message: 'invalid path "/x/y": unknown namespace "x"',
  });
  await assert.rejects(node.resolve("foo"), {
    code: "INVALID_PATH",
    message: `invalid path "foo": encoding/hex: invalid byte: U+006F 'o'`,
  });
  assert.throws(() => parseCid("f"), { code: "INVALID_CID", message: "cid too short" });
  await assert.rejects(node.resolve("/ipns/a..b"), { code: "INVALID_PATH", message: 'invalid IPNS root: "a..b"' });
  const absent = "/ipns/12D3KooWDNUXmH5LKRK2GBsmZ7TDGEXqHTLyjuSEdSgq9pbJWQJp";
  await assert.rejects(node.resolve(absent), { code: "NAME_NOT_FOUND", message: "could not resolve name" });
  await assert.rejects(node.reader()(parseCid("QmdfTbBqBPQ7VNxZEYEj14VmRuZBkqFbiwReogJgS1zR1n")), {
    code: "NODE_NOT_FOUND",
  });
});

test("the name of a fresh repo stands for the empty directory, also after it is opened again", async (t) => {
  const repo = await emptyFolder(t);
  const first = await openNode({ repo });
  const name = `/ipns/${first.repo.identity.peerId}`;
  assert.equal(String((await first.resolve(`${name}/`)).cid), emptyDirectory);
  await first.close();
  const second = await openNode({ repo });
  t.after(() => second.close());
  assert.equal(String((await second.resolve(name)).cid), emptyDirectory);
  await assert.rejects(second.resolve(`${name}/x`), { message: `no link named "x" under ${emptyDirectory}` });
});

test("the configuration says whether blocks are checked when they are read", async (t) => {
  const repo = await emptyFolder(t);
  const first = await openNode({ repo });
  await first.repo.config.set("Datastore.HashOnRead", () => true);
  await first.repo.config.set("Datastore.StorageMax", () => "");
  assert.equal(first.blocks.hashOnRead, true);
  assert.equal((await first.stat()).storageMax, undefined);
  await first.close();
  const second = await openNode({ repo });
  assert.equal(second.blocks.hashOnRead, true);
  assert.equal((await second.stat()).storageMax, undefined);
  await second.close();
});

test("closing goes on when a step fails, and tells of it; the repo is free afterwards", async (t) => {
  const repo = await emptyFolder(t);
  const steps: string[] = [];
  const stores = async () => {
    const blocks = memoryBlocks();
    const metadata = memoryMetadata();
    blocks.close = async () => {
      steps.push("blocks");
      throw new Error("the disk is gone");
    };
    metadata.close = async () => {
      steps.push("metadata");
    };
    return { blocks, metadata };
  };
  const node = await openNode({ repo, stores });
  await assert.rejects(node.close(), { message: "the disk is gone" });
  assert.deepEqual(steps, ["blocks", "metadata"]);
  await (await openNode({ repo })).close();
});

test("a start that fails leaves nothing open", async (t) => {
  const repo = await emptyFolder(t);
  const failing = { stores: () => Promise.reject(new Error("no store")) };
  await assert.rejects(openNode({ repo, ...failing }), { message: "no store" });
  const node = await openNode({ repo });
  assert.deepEqual(await pinned(node), [emptyDirectory]);
  await node.close();
});

test("after kill -9 the next start has the repo at once, and all that was there", async (t) => {
  const repo = await emptyFolder(t);
  const script = `import { createNode } from "modhost/node";
    const node = await createNode({ repo: process.argv[1] });
    await node.lowLevel.repo.announceApi("/ip4/127.0.0.1/tcp/1");
    console.log(node.lowLevel.repo.identity.peerId.toString());
    setInterval(() => {}, 1000);`;
  const child = spawn(process.execPath, ["--conditions=source", "--input-type=module", "-e", script, "--", repo], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  t.after(() => child.kill("SIGKILL"));
  const [said] = await once(child.stdout.setEncoding("utf8"), "data");
  await assert.rejects(openNode({ repo }), { message: `lock ${repo}/repo.lock: someone else has the lock` });
  child.kill("SIGKILL");
  await once(child, "exit");
  assert.ok((await readdir(repo)).includes("repo.lock"));
  const node = await openNode({ repo });
  assert.equal(node.repo.identity.peerId.toString(), String(said).trim());
  assert.deepEqual(await pinned(node), [emptyDirectory]);
  assert.equal((await readdir(repo)).includes("api"), false);
  await node.close();
  await rm(repo, { recursive: true });
});

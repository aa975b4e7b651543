import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { addEntries, addSettings, createNode, memoryStores, openFile, readFile } from "modhost/node";

async function* bytes(text: string): AsyncGenerator<Uint8Array> {
  yield Buffer.from(text);
}

async function* files() {
  yield { path: "hello.txt", kind: "file" as const, body: bytes("Hello Worlds!\n") };
}

test("a program adds a file and reads it back without HTTP", async () => {
  const repo = await mkdtemp(join(tmpdir(), "modhost-node-"));
  const { lowLevel: node } = await createNode({ repo });
  try {
    for await (const { name, built } of addEntries(node, files(), addSettings({}), { pin: true })) {
      assert.equal(name, "hello.txt");
      assert.equal(String(built?.cid), "QmVr26fY1tKyspEJBniVhqxQeEjhF78XerGiqWAwraVLQH");
    }
    const { cid } = await node.resolve("/ipfs/QmVr26fY1tKyspEJBniVhqxQeEjhF78XerGiqWAwraVLQH");
    assert.equal(await node.pins.mode(cid), "recursive");
    const pieces: Uint8Array[] = [];
    for await (const piece of readFile(await openFile(cid, node.reader()), node.reader())) pieces.push(piece);
    assert.equal(Buffer.concat(pieces).toString(), "Hello Worlds!\n");
  } finally {
    await node.close();
    await rm(repo, { recursive: true, force: true });
  }
});

test("a program may store everything in memory, and custom stores report their contents", async () => {
  const repo = await mkdtemp(join(tmpdir(), "modhost-node-"));
  const stores = memoryStores();
  const { lowLevel: node } = await createNode({ repo, offline: true, stores: async () => stores });
  try {
    const added = [];
    for await (const { built } of addEntries(node, files(), addSettings({}), { pin: false })) added.push(built?.cid);
    assert.equal(await stores.blocks.size(added[0] as NonNullable<(typeof added)[0]>), 22);
  } finally {
    await node.close();
    await rm(repo, { recursive: true, force: true });
  }
});

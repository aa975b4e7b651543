/** Other libraries read the data that this node writes, and the reverse. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { CarReader, CarWriter } from "@ipld/car";
import { exporter, recursive } from "ipfs-unixfs-exporter";
import { CID } from "multiformats/cid";
import type { LowLevelNode } from "#node/node/low_level_node.ts";
import { memoryBlocks } from "#node/storage/blockstore/memory.ts";
import { memoryMetadata } from "#node/storage/metadata/memory.ts";
import { call, rawBlock, startLab } from "./faults/lab.ts";
import { ask, multipart } from "./support.ts";

const contents: Readonly<Record<string, string>> = {
  "tree/empty": "",
  "tree/small": "small\n",
  "tree/sub/large": "0123456789".repeat(100_000),
  "tree/sub/ü mlaut": "name",
  ...Object.fromEntries(Array.from({ length: 300 }, (_, at) => [`tree/many/${at}`, `file ${at}`])),
};

const lab = () => startLab(async () => ({ blocks: memoryBlocks(), metadata: memoryMetadata() }));

async function addTree(port: number, query: string): Promise<string> {
  const parts = Object.entries(contents).map(([filename, content]) => ({
    filename: encodeURIComponent(filename),
    content,
  }));
  const { body } = await ask(port, `add?${query}`, multipart(parts));
  return (JSON.parse(body.trimEnd().split("\n").at(-1) as string) as { Hash: string }).Hash;
}

type Get = (cid: CID) => Promise<Uint8Array>;

/** Returns the files below a root, as ipfs-unixfs-exporter reads them. */
async function exported(root: string, get: Get): Promise<Record<string, string>> {
  const store = {
    async *get(cid: CID) {
      yield await get(cid);
    },
  } as unknown as Parameters<typeof recursive>[1];
  const files: Record<string, string> = {};
  for await (const { cid, path } of recursive(CID.parse(root), store)) {
    const entry = await exporter(cid, store);
    if (entry.type === "directory" || entry.type === "object") continue;
    files[path.replace(root, "tree")] = Buffer.concat(await Array.fromAsync(entry.content())).toString();
  }
  return files;
}

const ofNode =
  (node: LowLevelNode): Get =>
  (cid) =>
    node.reader({ offline: true })(cid);

for (const query of ["", "cid-version=1", "trickle=true&raw-leaves=true", "chunker=buzhash&inline=true"]) {
  test(`a tree added here (${query || "as it is"}) is read by ipfs-unixfs-exporter from the blocks of the node`, async () => {
    await using host = await lab();
    assert.deepEqual(await exported(await addTree(host.http, query), ofNode(host.node)), contents);
  });
}

test("ipfs-unixfs-exporter reads a sharded tree from an archive of dag/export, opened by @ipld/car", async () => {
  await using host = await lab();
  await host.node.repo.config.set("Experimental.ShardingEnabled", () => true);
  const root = await addTree(host.http, "");
  assert.deepEqual(await exported(root, ofNode(host.node)), contents);
  const reader = await CarReader.fromBytes((await call(host, `dag/export?arg=${root}`)).bytes);
  assert.deepEqual((await reader.getRoots()).map(String), [root]);
  const fromCar: Get = async (cid) => (await reader.get(cid))?.bytes as Uint8Array;
  assert.deepEqual(await exported(root, fromCar), contents);
});

test("the node imports, pins and reads an archive that @ipld/car wrote", async () => {
  await using host = await lab();
  const leaf = rawBlock("from another program");
  const { writer, out } = CarWriter.create([leaf.cid]);
  const read = Array.fromAsync(out);
  await writer.put(leaf);
  await writer.close();
  const { values } = await call(host, "dag/import", Buffer.concat(await read));
  assert.deepEqual(values, [{ Root: { Cid: { "/": String(leaf.cid) }, PinErrorMsg: "" } }]);
  await call(host, "repo/gc");
  assert.equal((await call(host, `cat?arg=${leaf.cid}`)).text, "from another program");
});

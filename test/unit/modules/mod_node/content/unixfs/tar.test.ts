import assert from "node:assert/strict";
import { once } from "node:events";
import { Readable } from "node:stream";
import { test } from "node:test";
import type { CID } from "multiformats/cid";
import { extract } from "tar-stream";
import { openNode } from "#node/content/unixfs/open.ts";
import { exportTar } from "#node/content/unixfs/tar.ts";
import { Trees } from "./trees.ts";

interface Unpacked {
  readonly name: string;
  readonly type: string;
  readonly mode: number;
  readonly target: string | null | undefined;
  readonly content: string;
}

async function pack(trees: Trees, cid: CID, name: string): Promise<Buffer> {
  return Buffer.concat(await Array.fromAsync(exportTar(openNode(cid, await trees.read(cid)), name, trees.read)));
}

async function unpack(archive: Buffer): Promise<Unpacked[]> {
  const found: Unpacked[] = [];
  const unpacking = extract();
  unpacking.on("entry", async ({ name, type, mode = 0, linkname }, stream, next) => {
    const content = Buffer.concat(await Array.fromAsync(stream as AsyncIterable<Buffer>)).toString();
    found.push({ name, type: String(type), mode, target: linkname, content });
    next();
  });
  Readable.from([archive]).pipe(unpacking);
  await once(unpacking, "finish");
  return found;
}

const long = "n".repeat(90);

test("an archive with long names, names beyond ASCII and empty files is read by other programs", async () => {
  const trees = new Trees();
  const contents: Record<string, string> = {
    "d/a": "alpha",
    "d/empty": "",
    [`d/${long}/${long}`]: "by prefix",
    [`d/${"m".repeat(120)}`]: "by a header of its own",
    "d/漢字": "beyond",
    "d/large": "x".repeat(5000),
  };
  const root = (await trees.add(contents)).get("d") as CID;
  const archive = await pack(trees, root, "d");
  assert.equal(archive.length % 512, 0);
  const found = await unpack(archive);
  const folders = found.filter(({ type }) => type === "directory").map(({ name, mode }) => [name, mode]);
  assert.deepEqual(folders, [
    ["d", 0o777],
    [`d/${long}`, 0o777],
  ]);
  const read = found.filter(({ type }) => type === "file").map(({ name, content }) => [name, content] as const);
  assert.deepEqual(Object.fromEntries(read), contents);
  assert.ok(found.every(({ type, mode }) => type !== "file" || mode === 0o644));
});

test("the root has the given name in the archive", async () => {
  const trees = new Trees();
  const root = (await trees.add({ "d/a": "alpha" })).get("d") as CID;
  assert.deepEqual(
    (await unpack(await pack(trees, root, "other"))).map(({ name }) => name),
    ["other", "other/a"],
  );
  const file = (await trees.add({ f: "text" })).get("f") as CID;
  assert.deepEqual(
    (await unpack(await pack(trees, file, "f"))).map(({ name }) => name),
    ["f"],
  );
});

test("a missing block ends the archive with its failure", async () => {
  const trees = new Trees();
  const added = await trees.add({ "d/a": "alpha", "d/b": "bravo" });
  trees.blocks.delete(String(added.get("d/b")));
  await assert.rejects(pack(trees, added.get("d") as CID, "d"), { message: "merkledag: not found" });
});

import assert from "node:assert/strict";
import { Readable } from "node:stream";
import { test } from "node:test";
import { comparing } from "./compared.ts";

const compared = comparing();
const { same, sameFailure } = compared;

const bytes = (text: string) => new TextEncoder().encode(text);

async function* pieces(...all: string[]) {
  for (const piece of all) yield bytes(piece);
}

test("add accepts all forms of one file that the clients accept", async () => {
  const inputs: (() => unknown)[] = [
    () => "a text",
    () => bytes("bytes"),
    () => bytes("a buffer").buffer,
    () => Buffer.from("a Buffer"),
    () => new Blob(["a blob"]),
    () => [1, 2, 3],
    () => [bytes("pieces "), bytes("in a list")],
    () => pieces("pieces ", "that come"),
    () => ["texts ", "in a list"],
    () => [],
    () => Readable.from([Buffer.from("a stream of Node")]),
    () => new Blob(["a web stream"]).stream(),
    () => ({ content: "without a path" }),
    () => ({ path: "file.txt", content: bytes("with a path") }),
    () => ({ path: "/a/../b/./file.txt", content: "in a directory" }),
    () => ({ path: "empty" }),
    () => ({ path: "f", content: "x", mode: 0o644, mtime: new Date(0) }),
  ];
  for (const input of inputs) await same((client) => client.add(input()));
  const { path } = (await same((client) => client.add(bytes("named by its CID")))) as { path: string };
  assert.match(path, /^Qm/);
});

test("add has the options of the clients", async () => {
  const content = "x".repeat(600_000);
  const options = [
    { cidVersion: 1 },
    { rawLeaves: true },
    { hashAlg: "sha2-512" },
    { chunker: "size-1000" },
    { trickle: true },
    { wrapWithDirectory: true },
    { onlyHash: true },
    { pin: false },
  ];
  for (const each of options) await same((client) => client.add({ path: "name", content }, each));
});

test("add refuses missing input, several inputs, and options that exclude each other", async () => {
  const many = "Unexpected input: multiple items passed - if you are using ipfs.add, please use ipfs.addAll instead";
  assert.equal(await sameFailure((client) => client.add([{ content: "a" }, { content: "b" }])), many);
  assert.equal(await sameFailure((client) => client.add(null)), "Unexpected input: null");
  await sameFailure((client) => client.add("x", { hashAlg: "none" }));
  await sameFailure((client) => client.add("x", { cidVersion: 7 }));
  await sameFailure((client) => client.add("x", { nocopy: true }));
});

test("addAll yields files and directories in the order of the RPC", async () => {
  const tree = () => [
    { path: "top/a.txt", content: "a" },
    { path: "top/sub/b.txt", content: bytes("b") },
    { path: "top/none" },
    { path: "other.txt", content: pieces("o") },
  ];
  const added = (await same((client) => client.addAll(tree()))) as { path: string }[];
  assert.deepEqual(
    added.map(({ path }) => path),
    ["top/a.txt", "top/sub/b.txt", "top/none", "top/sub", "top", "other.txt"],
  );
  await same((client) => client.addAll(tree(), { wrapWithDirectory: true }));
  await same((client) => client.addAll(["one", "two"]));
  await same((client) => client.addAll([bytes("one "), bytes("file")]));
  await same((client) => client.addAll([[bytes("one")], pieces("two")]));
  const single = "Unexpected input: single item passed - if you are using ipfs.addAll, please use ipfs.add instead";
  assert.equal(await sameFailure((client) => client.addAll("text")), single);
  assert.equal(await sameFailure((client) => client.addAll({ path: "p", content: "c" })), single);
});

test("add reports its progress as bytes arrive", async () => {
  const progressOf = async (client: { add(input: unknown, options: object): unknown }) => {
    const steps: unknown[] = [];
    const progress = (...step: unknown[]) => void steps.push(step);
    await client.add({ path: "big", content: new Uint8Array(600_000) }, { progress });
    return steps;
  };
  const steps = (await same(progressOf)) as number[][];
  assert.deepEqual(steps.at(-1), [600_000, "big"]);
});

test("cat, get and ls return the same as the clients", async () => {
  const files = [
    { path: "d/b", content: "bbb" },
    { path: "d/a", content: "aaaa" },
  ];
  const added = await Array.fromAsync(compared.node.addAll(files));
  const path = `/ipfs/${added.at(-1)?.cid}`;
  await same((client) => client.ls(path));
  await same((client) => client.ls(`${path}/a`));
  await same((client) => client.ls(`${path}/a`, { stream: true }));
  await same((client) => client.ls(path, { size: false, resolveType: false }));
  const empty = await compared.node.add({ path: "empty" });
  await same((client) => client.ls(empty.cid));
  assert.equal(await same((client) => client.cat(`${path}/a`)), "bytes aaaa");
  await same((client) => client.cat(`${path}/a`, { offset: 1, length: 2 }));
  await same((client) => client.cat(`${path}/a`, { offset: 9 }));
  await sameFailure((client) => client.cat(path));
  await sameFailure((client) => client.cat(`${path}/nothing`));
  await sameFailure((client) => client.cat(`${path}/a`, { offset: -1 }));
  await same((client) => client.get(`${path}/a`, { compress: true, compressionLevel: 9 }));
  await sameFailure((client) => client.get(path, { compress: true }));
  await sameFailure((client) => client.get(path, { compress: true, compressionLevel: 10 }));
});

test("an archive of a tree contains its files", async () => {
  const all = await Array.fromAsync(compared.node.addAll([{ path: "t/file", content: "content of it" }]));
  const packed = compared.node.get(String(all.at(-1)?.cid));
  const archive = Buffer.concat(await Array.fromAsync(packed)).toString("latin1");
  assert.ok(archive.includes("content of it"));
  assert.ok((await packed.length) > 0);
});

test("a byte stream is opened on demand, knows its length and lets pieces be released", async () => {
  const { cid } = await compared.node.add(new Uint8Array(1_000_000));
  const content = compared.node.cat(cid);
  assert.equal(await content.length, 1_000_000);
  let read = 0;
  for await (const piece of content) {
    read += piece.length;
    content.release(piece);
  }
  assert.equal(read, 1_000_000);
  await assert.rejects(compared.node.cat("QmUNLLsPACCz1vLxQVkXqqLX5R1X345qqfHbsf67hvA3Nn").opened, {
    message: "this dag node is a directory",
  });
});

test("refs and resolve return the same as the clients", async () => {
  const all = await Array.fromAsync(compared.node.addAll([{ path: "r/s/t", content: "refs" }]));
  const root = String(all.at(-1)?.cid);
  for (const options of [
    {},
    { recursive: true },
    { recursive: true, maxDepth: 1 },
    { edges: true },
    { unique: true },
  ]) {
    await same((client) => client.refs(root, options));
  }
  await same((client) => client.refs([root, root], { format: "<src> <linkname>", cidBase: "base64" }));
  await sameFailure((client) => client.refs(root, { edges: true, format: "<src>" }));
  await same(async ({ refs }) =>
    ((await Array.fromAsync(refs.local())) as { ref: string }[]).map(({ ref }) => ref).sort(),
  );
  assert.match((await same((client) => client.resolve(`/ipfs/${root}/s/t`))) as string, /^\/ipfs\/Qm/);
  await same((client) => client.resolve(`/ipfs/${root}`, { cidBase: "base32" }));
  await sameFailure((client) => client.resolve(`/ipfs/${root}/nothing`));
  await sameFailure((client) => client.resolve("/ipfs/none"));
});

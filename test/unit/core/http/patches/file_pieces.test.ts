/** Opened files are sent from reused memory, if their streams are Node's own. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import fs, { createReadStream, fstatSync, openSync, type ReadStream, readSync } from "node:fs";
import { mkdtemp, open, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { filePieces, whyFilesAreStreams } from "#core/http/patches/node/file_pieces.ts";
import type { PooledBody } from "#core/types.ts";

const content = Buffer.from(Array.from({ length: 200_000 }, (_, at) => at % 251));
let folder: string;
let path: string;

before(async () => {
  folder = await mkdtemp(join(tmpdir(), "modhost-pieces-"));
  path = join(folder, "file");
  await writeFile(path, content);
});
after(() => rm(folder, { recursive: true }));

async function opened(stream: ReadStream): Promise<ReadStream> {
  if (stream.pending) await once(stream, "open");
  return stream;
}

/** Returns the whole body, and releases each piece as soon as it was copied. */
async function bytesOf(body: PooledBody): Promise<{ bytes: Buffer; memory: Set<unknown> }> {
  const copies: Buffer[] = [];
  const memory = new Set<unknown>();
  for await (const piece of body as AsyncIterable<Uint8Array>) {
    copies.push(Buffer.from(piece));
    memory.add(piece.buffer);
    body.release(piece);
  }
  return { bytes: Buffer.concat(copies), memory };
}

test("a whole file is read into reused memory, and the file is closed afterwards", async () => {
  const stream = await opened(createReadStream(path));
  const { fd } = stream as unknown as { fd: number };
  const body = filePieces(stream, content.length);
  assert.ok(body !== undefined);
  const { bytes, memory } = await bytesOf(body);
  assert.ok(bytes.equals(content));
  assert.equal(memory.size, 1);
  if (!stream.closed) await once(stream, "close");
  assert.throws(() => fstatSync(fd), { code: "EBADF" });
});

test("a stream of a part of a file yields only that part", async () => {
  for (const [start, end, wanted] of [
    [10, 149_999, 149_990],
    [10, 19, 5],
    [10, 19, 500],
  ] as const) {
    const body = filePieces(await opened(createReadStream(path, { start, end })), wanted);
    assert.ok(body !== undefined);
    const { bytes } = await bytesOf(body);
    assert.ok(bytes.equals(content.subarray(start, Math.min(end + 1, start + wanted))));
  }
});

test("a file that has become shorter ends at its new end", async () => {
  const body = filePieces(await opened(createReadStream(path)), content.length + 10);
  assert.ok(body !== undefined);
  assert.equal((await bytesOf(body)).bytes.length, content.length);
});

test("a file that is not read to its end, or not at all, is closed", async () => {
  for (const pieces of [0, 1]) {
    const stream = await opened(createReadStream(path));
    const iterator = filePieces(stream, content.length)?.[Symbol.asyncIterator]();
    for (let at = 0; at < pieces; at += 1) await iterator?.next();
    await iterator?.return?.();
    if (!stream.closed) await once(stream, "close");
  }
});

test("a file whose stream is destroyed during a read is closed after that read", async (t) => {
  const stream = await opened(createReadStream(path));
  const body = filePieces(stream, content.length);
  const closing = t.mock.method(fs, "close");
  const reading = body?.[Symbol.asyncIterator]().next();
  stream.destroy();
  assert.equal(closing.mock.callCount(), 0);
  assert.equal((await reading)?.done, true);
  if (!stream.closed) await once(stream, "close");
  assert.equal(closing.mock.callCount(), 1);
});

test("an opened file is read from its beginning, whatever the position of its descriptor", async () => {
  const stream = await opened(createReadStream(path));
  readSync((stream as unknown as { fd: number }).fd, Buffer.alloc(100), 0, 100, null);
  const body = filePieces(stream, content.length);
  assert.ok(body !== undefined);
  assert.ok((await bytesOf(body)).bytes.equals(content));
});

test("a pipe, which has no positions, is read as its data arrives", {
  skip: process.platform === "win32",
}, async () => {
  const pipe = join(folder, "pipe");
  execFileSync("mkfifo", [pipe]);
  const writing = writeFile(pipe, content);
  const body = filePieces(await opened(createReadStream(pipe)), content.length);
  assert.ok(body !== undefined);
  assert.ok((await bytesOf(body)).bytes.equals(content));
  await writing;
});

test("a piece that is released twice, also by an earlier owner, is given to one body only", async () => {
  const begun = async () => {
    const body = filePieces(await opened(createReadStream(path)), content.length);
    assert.ok(body !== undefined);
    const iterator = body[Symbol.asyncIterator]();
    return { body, iterator, piece: async () => (await iterator.next()).value as Uint8Array };
  };
  const a = await begun();
  const b = await begun();
  const c = await begun();
  const first = await a.piece();
  a.body.release(first);
  a.body.release(first);
  const second = await b.piece();
  assert.equal(second.buffer, first.buffer);
  a.body.release(first);
  const third = await c.piece();
  assert.notEqual(third.buffer, second.buffer);
  for (const { iterator } of [a, b, c]) await iterator.return?.();
});

test("this version of Node.js exposes the state of a file stream, and another one is noticed", () => {
  assert.equal(whyFilesAreStreams(), undefined);
  assert.match(whyFilesAreStreams({ fd: 0, pos: 1, start: 1, end: 2 }) ?? "", /downloads of files take more CPU time/);
});

test("a stream that other code reads or waits for, or of another class, stays unchanged", async () => {
  const made: readonly (() => ReadStream | Promise<ReadStream>)[] = [
    async () => (await opened(createReadStream(path))).on("end", () => undefined),
    async () => (await opened(createReadStream(path))).resume(),
    () => opened(createReadStream(path, "utf8")),
    () => opened(createReadStream(path, { fs: { ...fs } })),
    async () => (await open(path)).createReadStream(),
    () => createReadStream(path, { fd: openSync(path, "r") }),
    () => createReadStream(path),
  ];
  for (const [at, make] of made.entries()) {
    const stream = await make();
    assert.equal(filePieces(stream, content.length), undefined, `stream ${at}`);
    stream.on("error", () => undefined).destroy();
    if (!stream.closed) await once(stream, "close");
  }
});

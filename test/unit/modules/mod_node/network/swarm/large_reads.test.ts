import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { type TestContext, test } from "node:test";
import { largeReads, markUsedAtOnce } from "#node/network/swarm/large_reads.ts";
import { eventually } from "#test/support/eventually.ts";

/**
 * Both ends of a connection: the server's, and one with large reads that retains what it receives.
 */
async function connection(t: TestContext, { listens = true } = {}) {
  const server = createServer();
  await once(server.listen(0, "127.0.0.1"), "listening");
  const near = connect({ port: (server.address() as AddressInfo).port, host: "127.0.0.1", onread: largeReads() });
  const [far] = (await once(server, "connection")) as [Socket];
  t.after(() => {
    near.destroy();
    far.destroy();
    server.close();
  });
  const pieces: Buffer[] = [];
  if (listens) near.on("data", (piece: Buffer) => pieces.push(piece));
  const came = (bytes: number) =>
    eventually("all bytes have arrived", () => pieces.reduce((sum, { length }) => sum + length, 0) === bytes);
  return { near, far, pieces, came };
}

test("data delivered to two sockets is never overwritten, however their reads alternate", async (t) => {
  const all = [await connection(t), await connection(t)];
  const sent = all.map(() => [9, 100_000, 17, 3_000_000, 400_000, 5].map((length) => randomBytes(length)));
  for (const at of (sent[0] as Buffer[]).keys()) {
    for (const [index, { far }] of all.entries()) far.write(sent[index]?.[at] as Buffer);
    await Promise.all(
      all.map(({ came }, index) => came(Buffer.concat((sent[index] as Buffer[]).slice(0, at + 1)).length)),
    );
  }
  for (const [index, { pieces }] of all.entries())
    assert.ok(Buffer.concat(pieces).equals(Buffer.concat(sent[index] as Buffer[])));
});

test("a few bytes occupy no more memory than their size", async (t) => {
  const { far, pieces, came } = await connection(t);
  far.write(randomBytes(100));
  await came(100);
  assert.ok((pieces[0] as Buffer).buffer.byteLength <= 65 * 1024);
});

test("a paused socket reads no further, and later continues with all data that arrived meanwhile", async (t) => {
  const { near, far, pieces, came } = await connection(t);
  const sent = randomBytes(30_000_000);
  near.once("data", () => near.pause());
  far.write(sent);
  await eventually("the socket is paused", () => near.isPaused());
  const stored = pieces.length;
  await new Promise((resolve) => setTimeout(resolve, 50));
  assert.equal(pieces.length, stored);
  near.resume();
  await came(sent.length);
  assert.ok(Buffer.concat(pieces).equals(sent));
  assert.ok(pieces.some(({ length }) => length > 64 * 1024));
});

test("data that is used at once is delivered in one buffer for all sockets", async (t) => {
  const all = [await connection(t), await connection(t)];
  const buffers = new Set<ArrayBufferLike>();
  const hashes = all.map(({ near }) => {
    const hash = createHash("sha256");
    near.on("data", (piece: Buffer) => hash.update(piece) && buffers.add(piece.buffer));
    markUsedAtOnce(near);
    return hash;
  });
  const sent = randomBytes(5_000_000);
  for (const { far } of all) far.write(sent);
  await Promise.all(all.map(({ came }) => came(sent.length)));
  assert.equal(buffers.size, 1);
  for (const hash of hashes) assert.equal(hash.digest("hex"), createHash("sha256").update(sent).digest("hex"));
});

test("data without a listener is buffered separately, also in a socket whose data is used at once", async (t) => {
  const waiting = await connection(t, { listens: false });
  const other = await connection(t);
  for (const { near } of [waiting, other]) markUsedAtOnce(near);
  waiting.far.write(Buffer.alloc(1000, 1));
  await eventually("the data waits in the socket", () => waiting.near.readableLength === 1000);
  other.far.write(Buffer.alloc(1000, 2));
  await other.came(1000);
  assert.ok(Buffer.alloc(1000, 1).equals(waiting.near.read()));
});

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { type TestContext, test } from "node:test";
import { largeReads } from "#node/network/swarm/large_reads.ts";
import { eventually } from "#test/support/eventually.ts";

/** Both ends of a connection: one that the server has, and one that reads in this way and keeps what it is handed. */
async function connection(t: TestContext) {
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
  near.on("data", (piece: Buffer) => pieces.push(piece));
  const came = (bytes: number) =>
    eventually("all has come", () => pieces.reduce((sum, { length }) => sum + length, 0) === bytes);
  return { near, far, pieces, came };
}

test("what two sockets were handed stays as it came, however they take turns", async (t) => {
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

test("a few bytes hold no more memory than they have", async (t) => {
  const { far, pieces, came } = await connection(t);
  far.write(randomBytes(100));
  await came(100);
  assert.ok((pieces[0] as Buffer).buffer.byteLength <= 64 * 1024);
});

test("a socket that is paused takes no more, and goes on where it was with all that has come meanwhile", async (t) => {
  const { near, far, pieces, came } = await connection(t);
  const sent = randomBytes(30_000_000);
  near.once("data", () => near.pause());
  far.write(sent);
  await eventually("it is paused", () => near.isPaused());
  const held = pieces.length;
  await new Promise((resolve) => setTimeout(resolve, 50));
  assert.equal(pieces.length, held);
  near.resume();
  await came(sent.length);
  assert.ok(Buffer.concat(pieces).equals(sent));
  assert.ok(pieces.some(({ length }) => length > 64 * 1024));
});

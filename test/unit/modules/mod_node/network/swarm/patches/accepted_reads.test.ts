import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { type TestContext, test } from "node:test";
import { largeReads } from "#node/network/swarm/large_reads.ts";
import { PatchNotices } from "#node/network/swarm/patches/notices.ts";
import { readAsDialled } from "#node/network/swarm/patches/tcp/accepted_reads.ts";
import { eventually } from "#test/support/eventually.ts";

/** The accepted end, the data that it delivers, and the dialling end. */
async function connection(t: TestContext) {
  const server = createServer();
  await once(server.listen(0, "127.0.0.1"), "listening");
  const { port } = server.address() as AddressInfo;
  const dialled = connect({ port, host: "127.0.0.1", onread: largeReads() });
  const [accepted] = (await once(server, "connection")) as [Socket];
  t.after(() => {
    dialled.destroy();
    accepted.destroy();
    server.close();
  });
  const pieces: Buffer[] = [];
  accepted.on("data", (piece: Buffer) => pieces.push(piece));
  const came = (bytes: number) =>
    eventually("all bytes have arrived", () => pieces.reduce((sum, { length }) => sum + length, 0) === bytes);
  return { dialled, accepted, pieces, came };
}

function noticed() {
  const reported: string[] = [];
  return { reported, notices: new PatchNotices((sentence) => reported.push(sentence)) };
}

test("an accepted socket continues with larger pieces, and no data is lost or overwritten", async (t) => {
  const { dialled, accepted, pieces, came } = await connection(t);
  const before = randomBytes(200_000);
  const behind = randomBytes(8_000_000);
  dialled.write(before);
  await came(before.length);
  assert.ok(pieces.every(({ length }) => length <= 64 * 1024));
  const { reported, notices } = noticed();
  readAsDialled(accepted, largeReads, notices);
  assert.deepEqual(reported, []);
  dialled.write(behind);
  await came(before.length + behind.length);
  assert.ok(pieces.some(({ length }) => length > 64 * 1024));
  assert.ok(Buffer.concat(pieces).equals(Buffer.concat([before, behind])));
});

test("an accepted socket can be changed while data arrives, also after it was read from", async (t) => {
  const { dialled, accepted, pieces, came } = await connection(t);
  const sent = randomBytes(8_000_000);
  let reads = 0;
  accepted.on("data", () => {
    reads += 1;
    if (reads === 3) readAsDialled(accepted, largeReads, new PatchNotices());
  });
  dialled.write(sent);
  await came(sent.length);
  assert.ok(Buffer.concat(pieces).equals(sent));
});

test("a changed socket pauses, resumes and ends as before", async (t) => {
  const { dialled, accepted, pieces, came } = await connection(t);
  readAsDialled(accepted, largeReads, new PatchNotices());
  const sent = randomBytes(30_000_000);
  accepted.once("data", () => accepted.pause());
  dialled.end(sent);
  await eventually("the socket is paused", () => accepted.isPaused());
  const stored = pieces.length;
  await new Promise((resolve) => setTimeout(resolve, 50));
  assert.equal(pieces.length, stored);
  accepted.resume();
  const ended = once(accepted, "end");
  await came(sent.length);
  await ended;
  assert.ok(Buffer.concat(pieces).equals(sent));
});

test("a socket that reads in this way already, or is closed, stays unchanged", async (t) => {
  const { dialled, accepted } = await connection(t);
  const { reported, notices } = noticed();
  const reads = () => assert.fail("it was asked for");
  readAsDialled(dialled, reads, notices);
  accepted.destroy();
  readAsDialled(accepted, reads, notices);
  assert.deepEqual(reported, []);
});

import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { streamPair } from "@libp2p/utils";
import { StreamDuplex } from "#node/network/p2p/stream_duplex.ts";

const mebibyte = 1024 * 1024;

async function pair() {
  const [far, near] = await streamPair();
  return { far, near, duplex: new StreamDuplex(near) };
}

/** Reads to the end. An iteration would destroy the duplex on Node.js 26. */
async function textOf(duplex: StreamDuplex): Promise<string> {
  const pieces: Buffer[] = [];
  duplex.on("data", (piece: Buffer) => pieces.push(piece));
  await once(duplex, "end");
  return Buffer.concat(pieces).toString();
}

test("each direction of a duplex ends independently", async () => {
  const { far, duplex } = await pair();
  const other = new StreamDuplex(far);
  duplex.end("question");
  assert.equal(await textOf(other), "question");
  other.end("answer");
  assert.equal(await textOf(duplex), "answer");
  assert.equal(duplex.moved, "question".length + "answer".length);
});

test("a duplex is read no faster than its user accepts data, and loses nothing", async () => {
  const { far, near, duplex } = await pair();
  for (let sent = 0; sent < 8; sent += 1) far.send(new Uint8Array(mebibyte));
  const closed = far.close();
  await once(duplex, "readable");
  assert.ok(duplex.readableLength < 8 * mebibyte);
  let got = 0;
  for await (const piece of duplex) got += (piece as Buffer).length;
  await closed;
  assert.deepEqual([got, near.readBufferLength], [8 * mebibyte, 0]);
});

test("the reset of either end is the end of the other", async () => {
  const one = await pair();
  const failed = once(one.duplex, "error");
  one.far.abort(new Error("no more"));
  await failed;
  assert.equal(one.duplex.destroyed, true);
  const two = await pair();
  const reset = new Promise((resolve) => two.far.addEventListener("close", resolve));
  two.duplex.destroy();
  await reset;
  assert.equal(two.far.status, "reset");
});

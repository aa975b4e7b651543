/**
 * Reads files concurrently. Block buffers are reused, and no reader may see the bytes of another.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { after, before, test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { digestOf, keystream } from "#test/support/content.ts";
import { overEach } from "#test/support/transports.ts";
import { type RpcHost, startRpc } from "./support.ts";

const mebibyte = 2 ** 20;
const size = 6 * mebibyte + 12_345;

interface Stored {
  readonly cid: string;
  readonly content: Buffer;
}

let rpc: RpcHost;
const files: Stored[] = [];

async function add(content: Buffer, options: string): Promise<Stored> {
  const body = new FormData();
  body.append("file", new File([content as Buffer<ArrayBuffer>], "file"));
  const response = await fetch(`http://127.0.0.1:${rpc.http}/api/v0/add?quieter=true&${options}`, {
    method: "POST",
    body,
  });
  return { cid: ((await response.json()) as { Hash: string }).Hash, content };
}

before(async () => {
  rpc = await startRpc({ https_ports: [0] });
  const forms = ["raw-leaves=false", "raw-leaves=true", "trickle=true", "chunker=size-100000", "chunker=size-1048576"];
  for (const [at, form] of forms.entries()) files.push(await add(Buffer.concat([...keystream(size, at + 1)]), form));
});
after(() => rpc?.stop());

const target = (path: string) => `http://127.0.0.1:${rpc.http}/api/v0/${path}`;
const read = async (path: string): Promise<Buffer> =>
  Buffer.from(await (await fetch(target(path), { method: "POST" })).arrayBuffer());

test("concurrent readers of whole files and ranges get what was added", async () => {
  const reading: Promise<void>[] = [];
  for (let round = 0; round < 2; round += 1) {
    for (const { cid, content } of files) {
      reading.push(read(`cat?arg=${cid}`).then((bytes) => assert.ok(bytes.equals(content))));
      for (let at = 0; at < 12; at += 1) {
        const offset = (round * 7919 + at * 497_003) % size;
        const length = at % 3 === 0 ? 600_000 : 4096;
        const expected = content.subarray(offset, offset + length);
        reading.push(
          read(`cat?arg=${cid}&offset=${offset}&length=${length}`).then((bytes) => assert.ok(bytes.equals(expected))),
        );
      }
    }
  }
  await Promise.all(reading);
});

overEach(
  () => rpc,
  "four at once get whole files",
  async (client) => {
    const replies = files
      .slice(0, 4)
      .map(({ cid }) => client.request({ method: "POST", path: `/api/v0/cat?arg=${cid}` }));
    for (const [at, reply] of (await Promise.all(replies)).entries()) {
      assert.ok(reply.bytes.equals((files[at] as Stored).content));
      assert.equal(reply.trailers["x-stream-error"], undefined);
    }
  },
);

test("blocks are returned unchanged, also to many readers at once", async () => {
  const { cid, content } = files[1] as Stored;
  const refs = (await rpc.call(`refs?arg=${cid}`)).lines as { Ref: string }[];
  const wanted = [...refs, ...refs, ...refs];
  const blocks = await Promise.all(wanted.map(({ Ref }) => read(`block/get?arg=${Ref}`)));
  assert.equal(digestOf(blocks.slice(0, refs.length)), digestOf([content]));
  for (const [at, block] of blocks.entries()) assert.ok(block.equals(blocks[at % refs.length] as Buffer));
});

test("a response can contain the same file several times, and files of equal blocks", async () => {
  const { cid, content } = files[0] as Stored;
  assert.ok((await read(`cat?arg=${cid}&arg=${cid}`)).equals(Buffer.concat([content, content])));
  const zeros = await add(Buffer.alloc(3 * mebibyte), "");
  const small = await add(Buffer.from("a block alone"), "inline=true&inline-limit=64");
  const both = await read(`cat?arg=${zeros.cid}&arg=${small.cid}&arg=${zeros.cid}`);
  assert.ok(both.equals(Buffer.concat([zeros.content, small.content, zeros.content])));
});

test("slow readers hold a few blocks each, and get what was added while others come and go", async () => {
  const { cid, content } = files[0] as Stored;
  const before = process.memoryUsage().arrayBuffers;
  const open = () => {
    const socket = connect({ port: rpc.http, host: "127.0.0.1" });
    socket.write(`POST /api/v0/cat?arg=${cid} HTTP/1.0\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n`);
    return socket;
  };
  const slow = Array.from({ length: 10 }, open);
  await Promise.all(slow.map((socket) => once(socket, "readable")));
  const leaving = Array.from({ length: 10 }, open);
  await Promise.all(leaving.map((socket) => once(socket, "readable")));
  for (const socket of leaving) socket.destroy();
  for (let turn = 0; turn < 100; turn += 1) await nextTurn();
  const bufferGrowth = process.memoryUsage().arrayBuffers - before;
  // Each reader has eight blocks that were read ahead, one in transit and one that was just sent.
  // The blocks of the ten readers that left may not have been collected yet.
  assert.ok(bufferGrowth < 20 * 10 * 330_000, `${bufferGrowth / mebibyte} MiB are held`);
  for (const socket of slow) {
    const response = Buffer.concat(await Array.fromAsync(socket as AsyncIterable<Buffer>));
    assert.ok(response.subarray(response.indexOf("\r\n\r\n") + 4).equals(content));
  }
});

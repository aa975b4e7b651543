import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { type TestContext, test } from "node:test";
import { streamPair } from "@libp2p/utils";
import { splice } from "#node/network/p2p/splice.ts";

const mebibyte = 1024 * 1024;

/** Both ends of a local connection; the target does not read yet. */
async function sockets(t: TestContext): Promise<{ readonly socket: Socket; readonly target: Socket }> {
  const server = createServer({ allowHalfOpen: true, pauseOnConnect: true }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const taken = once(server, "connection");
  const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
  const [[target]] = (await Promise.all([taken, once(socket, "connect")])) as unknown as [[Socket]];
  server.close();
  t.after(() => {
    socket.destroy();
    target.destroy();
  });
  return { socket, target };
}

test("buffered data for a slow target arrives, even if the stream closes in both directions before", async (t) => {
  const [far, near] = await streamPair();
  const { socket, target } = await sockets(t);
  const carried = splice(near, socket);
  const closed = new Promise((resolve) => near.addEventListener("close", resolve));
  target.end();
  const size = 24 * mebibyte;
  for (let sent = 0; sent < size; sent += mebibyte) far.send(new Uint8Array(mebibyte));
  await Promise.all([far.close(), closed]);
  assert.equal(near.status, "closed");
  assert.ok(near.readBufferLength > 0);
  let got = 0;
  for await (const piece of target) got += (piece as Buffer).length;
  assert.equal(got, size);
  await carried;
});

test("the last bytes of a local program reach a slow peer that sends nothing", async (t) => {
  const [far, near] = await streamPair({ delay: 5, capacity: 1 });
  const { socket, target } = await sockets(t);
  let got = 0;
  far.addEventListener("message", ({ data }) => {
    got += data.byteLength;
  });
  const over = new Promise((resolve) => far.addEventListener("close", ({ error }) => resolve(error)));
  const carried = splice(near, socket);
  await far.close();
  target.resume().end(Buffer.alloc(mebibyte));
  const [failure] = await Promise.all([over, carried]);
  assert.equal(failure, undefined);
  assert.equal(got, mebibyte);
});

test("a stream that is closed before it is spliced delivers its buffered data", async (t) => {
  const [far, near] = await streamPair();
  const { socket, target } = await sockets(t);
  far.send(Buffer.from("last words"));
  const closed = new Promise((resolve) => near.addEventListener("close", resolve));
  await Promise.all([far.close(), near.close(), closed]);
  const carried = splice(near, socket);
  target.end();
  assert.equal(String(await target.toArray()), "last words");
  await carried;
});

test("bytes pushed back into an ended stream are delivered, then the end", async (t) => {
  const [far, near] = await streamPair();
  const { socket, target } = await sockets(t);
  // libp2p does this with data that arrived together with the negotiation.
  const received = new Promise<Uint8Array>((resolve) => {
    near.addEventListener("message", ({ data }) => resolve(data.subarray()), { once: true });
  });
  const ended = new Promise((resolve) => near.addEventListener("end", resolve));
  far.send(Buffer.from("hello"));
  const bytes = await received;
  await Promise.all([far.close(), ended]);
  near.push(bytes);
  assert.equal(near.readableEnded, true);
  const carried = splice(near, socket);
  target.end();
  assert.equal(String(await target.toArray()), "hello");
  await carried;
});

test("a reset stream resets the local connection instead of ending it", async (t) => {
  const [far, near] = await streamPair();
  const { socket, target } = await sockets(t);
  const carried = splice(near, socket);
  far.send(Buffer.from("half of"));
  await once(target.resume(), "data");
  const failed = once(target, "error");
  far.abort(new Error("gone"));
  assert.equal((await failed)[0].code, "ECONNRESET");
  await carried;
});

test("a stream that was reset before any data arrived closes the local connection", async (t) => {
  const [far, near] = await streamPair();
  const { socket, target } = await sockets(t);
  const reset = new Promise((resolve) => near.addEventListener("close", resolve));
  far.abort(new Error("gone"));
  await reset;
  const [, brought] = await Promise.all([splice(near, socket), target.toArray()]);
  assert.deepEqual(brought, []);
});

test("a reset after the end of the local side counts as an end", async (t) => {
  const [far, near] = await streamPair();
  const { socket, target } = await sockets(t);
  const carried = splice(near, socket);
  far.addEventListener("remoteCloseWrite", () => far.abort(new Error("closed, as go-ipfs does it")));
  far.send(Buffer.from("all of it"));
  assert.equal(String((await once(target.resume(), "data"))[0]), "all of it");
  target.end();
  assert.deepEqual(await target.toArray(), []);
  await carried;
});

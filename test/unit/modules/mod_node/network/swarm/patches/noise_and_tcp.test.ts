import assert from "node:assert/strict";
import { randomBytes, randomInt } from "node:crypto";
import { once } from "node:events";
import { type AddressInfo, connect, createServer, Socket } from "node:net";
import { type TestContext, test } from "node:test";
import type { Libp2p, MessageStream, Stream } from "@libp2p/interface";
import { noise } from "@libp2p/noise";
import { tcp } from "@libp2p/tcp";
import { yamux } from "@libp2p/yamux";
import { createLibp2p } from "libp2p";
import { Uint8ArrayList } from "uint8arraylist";
import { NoiseFrameDecoder, replaceFrameDecoder } from "#node/network/swarm/patches/noise/frame_decoder.ts";
import { PatchNotices } from "#node/network/swarm/patches/notices.ts";
import { coalesce, coalesceWrites, type WriteOptions } from "#node/network/swarm/patches/tcp/coalesce_writes.ts";
import { startPeer } from "../support.ts";

const echoing = "/test/echo";

/** The stream echoes all data. */
const echo = (stream: Stream): void => {
  stream.addEventListener("message", ({ data }) => stream.send(data));
};

/**
 * Sends bytes in pieces of any length, and resolves to the echoed bytes when as many have returned.
 */
function sentBack(stream: Stream, bytes: Uint8Array): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  const back: Uint8Array[] = [];
  let left = bytes.length;
  stream.addEventListener("close", ({ error }) => reject(error ?? new Error("closed")));
  stream.addEventListener("message", ({ data }) => {
    back.push(data.subarray());
    left -= data.byteLength;
    if (left === 0) resolve(Buffer.concat(back));
  });
  for (let at = 0; at < bytes.length; ) {
    const piece = bytes.subarray(at, at + randomInt(1, 200_000));
    at += piece.length;
    stream.send(new Uint8ArrayList(piece.subarray(0, 7), piece.subarray(7)));
  }
  return promise;
}

test("frames are decoded however the bytes are split", () => {
  const sent = [1, 65_535, 0, 16, 0, 300, 2, 65_519].map((length) => randomBytes(length));
  const whole = Buffer.concat(sent.flatMap((frame) => [Buffer.of(frame.length >> 8, frame.length & 0xff), frame]));
  for (const longest of [1, 2, 3, 17, 40_000, whole.length]) {
    const frames = new NoiseFrameDecoder();
    const got: Uint8Array[] = [];
    for (let at = 0; at < whole.length; ) {
      const part = Buffer.from(whole.subarray(at, at + randomInt(1, longest + 1)));
      at += part.length;
      const half = part.length >> 1;
      const list = new Uint8ArrayList(part.subarray(0, half), part.subarray(half));
      for (const frame of frames.decode(at % 2 === 0 ? part : list)) got.push(Buffer.from(frame));
      // The next read overwrites it.
      part.fill(0);
    }
    assert.deepEqual(
      got,
      sent.filter(({ length }) => length > 0),
    );
  }
});

/** A libp2p node without patches. */
async function startOther(t: TestContext): Promise<Libp2p> {
  const other = await createLibp2p({
    addresses: { listen: ["/ip4/127.0.0.1/tcp/0"] },
    transports: [tcp()],
    connectionEncrypters: [noise()],
    streamMuxers: [yamux()],
  });
  t.after(() => other.stop());
  return other;
}

for (const direction of ["in", "out"] as const) {
  test(`a peer without patches receives and returns every byte: ${direction}bound`, async (t) => {
    const own = await startPeer();
    t.after(() => own.stop());
    const other = await startOther(t);
    const [from, to] = direction === "in" ? [other, own.swarm.libp2p] : [own.swarm.libp2p, other];
    const cork = t.mock.method(Socket.prototype, "cork");
    const decode = t.mock.method(NoiseFrameDecoder.prototype, "decode");
    await to.handle(echoing, echo);
    const stream = await from.dialProtocol(to.getMultiaddrs(), echoing);
    const bytes = randomBytes(12 * 1024 * 1024);
    assert.ok(bytes.equals(await sentBack(stream, bytes)));
    assert.ok(decode.mock.callCount() > 10, "frames are not read here");
    assert.ok(cork.mock.callCount() > 10, "writes are not put together here");
  });
}

test("bytes received before the decoder was replaced are not lost, and a frame must have a tag", () => {
  const frame = randomBytes(40);
  const came = Buffer.concat([Buffer.of(0, frame.length), frame]);
  const handshake = { decrypt: (bytes: Uint8Array) => Buffer.from(bytes) };
  const connection = {
    handshake,
    decrypt: () => Buffer.alloc(0),
    decoder: { buffer: new Uint8ArrayList(came.subarray(0, 30)) },
  };
  assert.ok(replaceFrameDecoder(connection as unknown as MessageStream, new PatchNotices()));
  const { decoder, decrypt } = connection as unknown as {
    readonly decoder: { decode(bytes: Uint8Array): Iterable<readonly Uint8Array[]> };
    decrypt(frames: readonly Uint8Array[]): Uint8ArrayList;
  };
  const [complete] = decoder.decode(Buffer.concat([came.subarray(30), came, came.subarray(0, 30)]));
  assert.ok(complete !== undefined && Buffer.concat([frame, frame]).equals(decrypt(complete).subarray()));
  assert.deepEqual([...decoder.decode(came.subarray(30, 31))], []);
  assert.throws(() => decrypt([frame.subarray(0, 15)]), /without its tag/);
});

test("short pieces are joined, and no byte changes", () => {
  const pieces = [2, 12, 9000, 16, 2, 5000, 3000, 16].map((length) => randomBytes(length));
  const written = coalesce(pieces);
  assert.deepEqual(
    [...written].map(({ length }) => length),
    [14, 9000, 18, 5000, 3000, 16],
  );
  assert.ok(Buffer.concat(pieces).equals(written.subarray()));
});

/** A connection over a socket whose other end reads on request. */
async function overSocket(t: TestContext, options: WriteOptions) {
  const server = createServer({ pauseOnConnect: true });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const socket = connect((server.address() as AddressInfo).port, "127.0.0.1");
  const [[far]] = (await Promise.all([once(server, "connection"), once(socket, "connect")])) as [[Socket], unknown];
  t.after(() => {
    socket.destroy();
    far.destroy();
    server.close();
  });
  const sendData = () => assert.fail("the library writes");
  const connection = { socket, sendData } as unknown as MessageStream;
  coalesceWrites(connection, new PatchNotices(), options);
  const send = (...pieces: Uint8Array[]) =>
    (connection as unknown as { sendData(data: Uint8ArrayList): unknown }).sendData(new Uint8ArrayList(...pieces));
  const came = async (length: number) => {
    const all: Buffer[] = [];
    let received = 0;
    for await (const piece of far) {
      all.push(piece);
      received += piece.length;
      if (received >= length) break;
    }
    return Buffer.concat(all);
  };
  return { socket, send, came };
}

test("data that the system has accepted is freed on request, and arrives unchanged", async (t) => {
  for (const transfer of [true, false]) {
    const { socket, send, came } = await overSocket(t, { transfer });
    const long = randomBytes(30_000);
    const short = randomBytes(20);
    const sent = Buffer.concat([short, long]);
    assert.deepEqual(send(short, long), { sentBytes: sent.length, canSendMore: true });
    assert.equal(socket.writableLength, 0);
    assert.equal(long.length, transfer ? 0 : 30_000);
    assert.ok(sent.equals(await came(sent.length)));
  }
});

test("data that is buffered in the socket is not freed, and the sender has to wait", async (t) => {
  const { socket, send, came } = await overSocket(t, { transfer: true });
  const long = Array.from({ length: 8 }, () => randomBytes(4_000_000));
  const sent = Buffer.concat(long);
  assert.deepEqual(send(...long), { sentBytes: sent.length, canSendMore: false });
  assert.ok(socket.writableLength > 0);
  assert.ok(sent.equals(await came(sent.length)));
});

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { constants, deflateRawSync } from "node:zlib";
import { RawConnection } from "#test/support/raw.ts";
import { clientFrame, handshake, SocketClient } from "#test/support/websocket.ts";
import { serving } from "#test/support/websocket_service.ts";

const mebibyte = 1024 * 1024;
const limits = { pingInterval: 10, closeTimeout: 0.1, maxMessage: 64 * 1024, maxUnsent: 64 * mebibyte };

describe("silence", () => {
  test("a client that reads slowly, while a ping waits behind what it was sent, is not silent", async () => {
    await using service = await serving({ websocket: { ...limits, pingInterval: 0.1 } });
    using client = await SocketClient.open(service.url);
    const socket = await service.accepted;
    const count = 96;
    let received = 0;
    const all = Promise.withResolvers<void>();
    client.ws.on("message", () => {
      received += 1;
      if (received === count) all.resolve();
      client.ws.pause();
      setTimeout(() => client.ws.resume(), 10);
    });
    for (let sent = 0; sent < count; sent += 1) void socket.send(Buffer.alloc(mebibyte / 4));
    const ended = await Promise.race([all.promise, socket.closed]);
    assert.deepEqual([ended, received], [undefined, count]);
    assert.equal(socket.open, true);
  });

  test("a client that takes nothing of what waits is silent", async () => {
    await using service = await serving({ websocket: { ...limits, pingInterval: 0.05 } });
    using client = await SocketClient.open(service.url);
    const socket = await service.accepted;
    client.ws.pause();
    void socket.send(Buffer.alloc(24 * mebibyte));
    const ended = await socket.closed;
    assert.deepEqual([ended.code, /silent/.test(ended.reason)], [1006, true]);
  });

  test("what the system takes of small messages is no sign of the client", async () => {
    await using service = await serving({ websocket: { ...limits, pingInterval: 0.05 } });
    using client = await SocketClient.open(service.url, { autoPong: false });
    const socket = await service.accepted;
    const talk = setInterval(() => void socket.send("tick"), 2);
    const ended = await socket.closed.finally(() => clearInterval(talk));
    assert.match(ended.reason, /silent/);
    assert.equal(client.ws.isPaused, false);
  });

  test("without an interval nobody is pinged, nor cut for silence", async () => {
    await using service = await serving({ websocket: { ...limits, pingInterval: 0 } });
    using client = await SocketClient.open(service.url, { autoPong: false });
    const socket = await service.accepted;
    let pings = 0;
    client.ws.on("ping", () => (pings += 1));
    await delay(50);
    assert.deepEqual([socket.open, pings], [true, 0]);
  });
});

describe("memory", () => {
  test("short messages to a client that does not read count with what each of them costs", async () => {
    await using service = await serving({ websocket: { ...limits, maxUnsent: 16 * mebibyte } });
    using client = await SocketClient.open(service.url);
    const socket = await service.accepted;
    client.ws.pause();
    // More than the system takes, less than may wait.
    void socket.send(Buffer.alloc(12 * mebibyte));
    let sent = 0;
    while (socket.open && sent < 100_000) {
      void socket.send("x");
      sent += 1;
    }
    assert.ok(sent > 1000 && sent < 100_000, `${sent} messages were taken`);
    assert.deepEqual(await socket.closed, { code: 1006, reason: "the client reads too slowly" });
  });

  test("short messages to a client that keeps up do not", async () => {
    await using service = await serving({ websocket: { ...limits, maxUnsent: mebibyte } });
    using client = await SocketClient.open(service.url);
    const socket = await service.accepted;
    const count = 20_000;
    const all = Promise.withResolvers<void>();
    let received = 0;
    client.ws.on("message", () => {
      received += 1;
      if (received === count) all.resolve();
    });
    for (let sent = 0; sent < count; sent += 1) await socket.send("x");
    await Promise.race([all.promise, socket.closed]);
    assert.equal(received, count);
  });

  test("what one piece of a compressed connection unpacks to is bounded, and thrown away beyond that", async () => {
    await using service = await serving({ websocket: limits }, { compression: true });
    using connection = await RawConnection.open(service.port);
    connection.write(handshake("/app/", { "Sec-WebSocket-Extensions": "permessage-deflate" }));
    await connection.until(/permessage-deflate.*\r\n\r\n/s);
    const socket = await service.accepted;
    const packed = deflateRawSync(Buffer.alloc(64 * 1024), { finishFlush: constants.Z_SYNC_FLUSH }).subarray(0, -4);
    // The first reserved bit says that it is compressed; the client is read from until messages wait.
    const frame = clientFrame(0x42, packed);
    connection.write(Buffer.concat(Array.from({ length: Math.floor((64 * 1024) / frame.length) }, () => frame)));
    connection.write(frame);
    await socket.receive();
    assert.deepEqual(await socket.closed, { code: 1006, reason: "what it sent unpacks to too much" });
    assert.equal(await socket.receive(), undefined);
  });
});

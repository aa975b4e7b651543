import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { constants, deflateRawSync } from "node:zlib";
import type { WebSocketConnection, WebSocketEvent } from "#core/types.ts";
import { RawConnection } from "#test/support/raw.ts";
import { TestService } from "#test/support/service.ts";
import { clientFrame, handshake, SocketClient } from "#test/support/websocket.ts";
import { serving } from "#test/support/websocket_service.ts";

const mebibyte = 1024 * 1024;
const limits = { pingInterval: 3600, closeTimeout: 0.1, maxMessage: 64 * 1024, maxUnsent: 64 * mebibyte };

describe("silence of a client", () => {
  test("a client that reads slowly, while a ping waits behind what it was sent, is not silent", async () => {
    await using service = await serving({ websocket: { ...limits, pingInterval: 2 } });
    using client = await SocketClient.open(service.url);
    const socket = await service.accepted;
    const count = 96;
    let received = 0;
    const all = Promise.withResolvers<void>();
    client.ws.on("message", () => {
      received += 1;
      if (received === count) all.resolve();
      client.ws.pause();
      setTimeout(() => client.ws.resume(), 50);
    });
    for (let sent = 0; sent < count; sent += 1) void socket.send(Buffer.alloc(mebibyte / 4));
    const ended = await Promise.race([all.promise, socket.closed]);
    assert.deepEqual([ended, received], [undefined, count]);
    assert.equal(socket.open, true);
  });

  test("a client that reads nothing of the waiting data is silent", async () => {
    await using service = await serving({ websocket: { ...limits, pingInterval: 0.05 } });
    using client = await SocketClient.open(service.url);
    const socket = await service.accepted;
    client.ws.pause();
    void socket.send(Buffer.alloc(24 * mebibyte));
    const ended = await socket.closed;
    assert.deepEqual([ended.code, /silent/.test(ended.reason)], [1006, true]);
  });

  test("small messages that only the system has taken do not show that the client reads", async () => {
    await using service = await serving({ websocket: { ...limits, pingInterval: 0.05 } });
    using client = await SocketClient.open(service.url, { autoPong: false });
    const socket = await service.accepted;
    const talk = setInterval(() => void socket.send("tick"), 2);
    const ended = await socket.closed.finally(() => clearInterval(talk));
    assert.match(ended.reason, /silent/);
    assert.equal(client.ws.isPaused, false);
  });

  test("clients are neither pinged nor cut for silence without an interval", async () => {
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
  test("short messages to a client that does not read count with their memory cost", async () => {
    await using service = await serving({ websocket: { ...limits, maxUnsent: 16 * mebibyte } });
    using client = await SocketClient.open(service.url);
    const socket = await service.accepted;
    client.ws.pause();
    // This is more than the system accepts, so some of it waits, but less than may wait.
    void socket.send(Buffer.alloc(12 * mebibyte));
    let sent = 0;
    while (socket.open && sent < 100_000) {
      void socket.send("x");
      sent += 1;
    }
    assert.ok(sent > 1000 && sent < 100_000, `${sent} messages were taken`);
    assert.deepEqual(await socket.closed, { code: 1006, reason: "the client reads too slowly" });
  });

  test("short messages to a client that keeps up do not count", async () => {
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

  test("the messages that one compressed piece unpacks to are limited, and dropped beyond that", async () => {
    await using service = await serving({ websocket: limits }, { compression: true });
    using connection = await RawConnection.open(service.port);
    connection.write(handshake("/app/", { "Sec-WebSocket-Extensions": "permessage-deflate" }));
    await connection.until(/permessage-deflate.*\r\n\r\n/s);
    const socket = await service.accepted;
    const packed = deflateRawSync(Buffer.alloc(64 * 1024), { finishFlush: constants.Z_SYNC_FLUSH }).subarray(0, -4);
    // The first reserved bit marks a compressed message; reading from the client stops when
    // messages wait.
    const frame = clientFrame(0x42, packed);
    connection.write(Buffer.concat(Array.from({ length: Math.floor((64 * 1024) / frame.length) }, () => frame)));
    connection.write(frame);
    await socket.receive();
    assert.deepEqual(await socket.closed, { code: 1006, reason: "its messages unpack to too many bytes" });
    assert.equal(await socket.receive(), undefined);
  });

  test("the data that waits on all compressed connections is limited: a connection that adds to it is cut, and the others are not", async () => {
    const message = 8 * mebibyte;
    const most = 256 * mebibyte;
    const packed = deflateRawSync(Buffer.alloc(message), { finishFlush: constants.Z_SYNC_FLUSH }).subarray(0, -4);
    // The first message waits for the handler, so the two large ones are unpacked while reading
    // from the client has stopped.
    const pieces = Buffer.concat([clientFrame("text", "first"), clientFrame(0x42, packed), clientFrame(0x42, packed)]);
    const sockets: WebSocketConnection[] = [];
    const { promise: over, resolve: end } = Promise.withResolvers<void>();
    const route = {
      "WS /": async (event: WebSocketEvent) => {
        const socket = event.accept();
        sockets.push(socket);
        await socket.receive();
        await over;
      },
    };
    const provider = { route, websocket: { compression: true } };
    await using service = await TestService.start(provider, { websocket: { ...limits, maxMessage: message } });
    const count = most / (2 * message) + 1;
    const connections: RawConnection[] = [];
    for (let at = 0; at < count; at += 1) {
      const connection = await RawConnection.open(service.port);
      connections.push(connection);
      connection.write(handshake("/app/", { "Sec-WebSocket-Extensions": "permessage-deflate" }));
      await connection.until(/permessage-deflate.*\r\n\r\n/s);
      connection.write(pieces);
    }
    const cut = await Promise.race(sockets.map(({ closed }) => closed));
    assert.equal(cut.reason, "its messages unpack to too many bytes");
    assert.equal(sockets.filter(({ open }) => open).length, count - 1);
    end();
    for (const connection of connections) connection[Symbol.dispose]();
  });

  test("tiny messages use no more memory than they fill, and those of a client that has left do not accumulate", async () => {
    // Each is a separate stream, which is unpacked into a separate buffer.
    const packed = deflateRawSync(Buffer.from("a"));
    const piece = Buffer.concat(Array.from({ length: 4000 }, () => clientFrame(0x42, packed)));
    await using service = await serving({ websocket: limits }, { compression: true });
    using connection = await RawConnection.open(service.port);
    connection.write(handshake("/app/", { "Sec-WebSocket-Extensions": "permessage-deflate" }));
    const socket = await service.accepted;
    connection.write(piece);
    const waiting = [await socket.receive()];
    connection.destroy();
    await socket.closed;
    for (let message = await socket.receive(); message !== undefined; message = await socket.receive())
      waiting.push(message);
    assert.ok(waiting.length < 1000, `${waiting.length} of 4000 messages were kept`);
    const retained = new Set(waiting.map((message) => (message as Buffer).buffer));
    assert.ok(
      retained.size < waiting.length / 2,
      `${retained.size} buffers for ${waiting.length} messages of one byte`,
    );
  });
});

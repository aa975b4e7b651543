import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { describe, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import type { WebSocketClosed } from "#core/types.ts";
import type { RawConnection } from "#test/support/raw.ts";
import { TestService } from "#test/support/service.ts";
import { clientFrame, closeCode, handshake, openRaw, SocketClient } from "#test/support/websocket.ts";
import { serving } from "#test/support/websocket_service.ts";

const limits = { pingInterval: 10, closeTimeout: 0.1, maxMessage: 64 * 1024, maxUnsent: 1024 * 1024 };

describe("backpressure", () => {
  test("a busy consumer slows the client down, and loses nothing", async () => {
    await using service = await serving({ websocket: limits });
    const size = 16 * 1024;
    const count = 4096;
    const socket = connect(service.port, "127.0.0.1");
    socket.on("error", () => undefined).write(handshake("/app/"));
    const server = await service.accepted;
    const frame = (at: number) => clientFrame("binary", Buffer.alloc(size, at % 256));
    let sent = 0;
    const writing = (async () => {
      for (; sent < count; sent += 1) if (!socket.write(frame(sent))) await once(socket, "drain");
    })();
    let before = -1;
    while (before !== sent) {
      before = sent;
      await delay(50);
    }
    assert.ok(sent * size < 20 * 1024 * 1024, `${sent} of ${count} messages were taken in while nobody asked for any`);
    for (let at = 0; at < count; at += 1) {
      const message = (await server.receive()) as Buffer;
      assert.equal(message.length, size);
      assert.equal(message[0], at % 256);
    }
    await writing;
    socket.destroy();
  });

  test("many tiny messages in one piece stay in order, and reading from the client resumes", async () => {
    await using service = await serving();
    using connection = await openRaw(service.port, "/app/");
    const socket = await service.accepted;
    const frames = Array.from({ length: 5000 }, (_, at) => clientFrame("text", `${at}`));
    connection.write(Buffer.concat(frames));
    for (let at = 0; at < 5000; at += 1) assert.equal(await socket.receive(), `${at}`);
    connection.write(clientFrame("close"));
    assert.equal(await socket.receive(), undefined);
  });

  test("a sender that awaits goes no faster than the client reads, and everything arrives", async () => {
    await using service = await serving();
    using client = await SocketClient.open(service.url);
    const socket = await service.accepted;
    client.ws.pause();
    const piece = Buffer.alloc(64 * 1024, 1);
    const count = 1024;
    let sent = 0;
    const sending = (async () => {
      for (; sent < count; sent += 1) await socket.send(piece);
    })();
    let before = -1;
    while (before !== sent) {
      before = sent;
      await delay(50);
    }
    assert.ok(sent < count / 2, `${sent} of ${count} pieces went to a client that does not read`);
    let received = 0;
    client.ws.removeAllListeners("message").on("message", () => (received += 1));
    client.ws.resume();
    await sending;
    await client.close();
    assert.equal(received, count);
  });
});

describe("hostile clients", () => {
  const endOf = async (connection: RawConnection): Promise<number | undefined> => closeCode(await connection.end());

  test("frames that break the protocol close it with the code that says why", async () => {
    const cases: [why: string, bytes: Buffer, code: number][] = [
      ["not masked", clientFrame("text", "x", { masked: false }), 1002],
      ["garbage", Buffer.from("GET / HTTP/1.1\r\nHost: a\r\n\r\n"), 1002],
      ["reserved bits", Buffer.concat([Buffer.from([0xf1, 0x80, 0, 0, 0, 0])]), 1002],
      ["an unknown kind of frame", clientFrame(3), 1002],
      ["a control frame in fragments", clientFrame("ping", "", { final: false }), 1002],
      ["a control frame that is too long", clientFrame("ping", "x".repeat(126)), 1002],
      ["a continuation of nothing", clientFrame("continuation", "x"), 1002],
      ["text that is not UTF-8", clientFrame("text", Buffer.from([0xff, 0xfe])), 1007],
      ["a close frame with half a code", clientFrame("close", "x"), 1002],
      ["a message that is too large", clientFrame("binary", Buffer.alloc(64 * 1024 + 1)), 1009],
      [
        "a length that nobody can mean",
        Buffer.from([0x82, 0xff, 0x7f, 255, 255, 255, 255, 255, 255, 255, 0, 0, 0, 0]),
        1009,
      ],
    ];
    for (const [why, bytes, code] of cases) {
      await using service = await serving();
      using connection = await openRaw(service.port, "/app/");
      const socket = await service.accepted;
      connection.write(bytes);
      assert.equal(await endOf(connection), code, why);
      assert.equal(await socket.receive(), undefined, why);
      const closed = await socket.closed;
      assert.deepEqual([closed.code, closed.reason !== ""], [code, true], why);
      assert.equal(service.host.mount.active.size, 0, why);
    }
  });

  test("a message is limited over all of its fragments, by the app's own limit if it has one", async () => {
    await using service = await serving({}, { max_message_bytes: 1000 });
    using connection = await openRaw(service.port, "/app/");
    await service.accepted;
    connection.write(clientFrame("binary", Buffer.alloc(600), { final: false }));
    connection.write(clientFrame("continuation", Buffer.alloc(600)));
    assert.equal(await endOf(connection), 1009);
  });

  test("a client is cut when it does not answer pings, unless it sends", async () => {
    await using service = await serving({ websocket: { ...limits, pingInterval: 0.06 } });
    using client = await SocketClient.open(service.url, { autoPong: false });
    const socket = await service.accepted;
    const [, ended] = await Promise.all([client.closed, socket.closed]);
    assert.deepEqual([ended.code, /silent/.test(ended.reason)], [1006, true]);

    await using patient = await serving({ websocket: { ...limits, pingInterval: 0.06 } });
    using good = await SocketClient.open(patient.url);
    let pings = 0;
    good.ws.on("ping", () => (pings += 1));
    const open = await patient.accepted;
    while (pings < 5) await once(good.ws, "ping");
    assert.equal(open.open, true);
  });

  test("a consumer that is busy for longer than the ping interval does not cost its client the connection", async () => {
    await using service = await serving({ websocket: { ...limits, pingInterval: 0.05 } });
    using client = await SocketClient.open(service.url);
    const socket = await service.accepted;
    for (let at = 0; at < 200; at += 1) client.send(Buffer.alloc(60_000, at));
    await delay(300);
    for (let at = 0; at < 200; at += 1) assert.equal(((await socket.receive()) as Buffer)[0], at);
    await delay(100);
    assert.equal(socket.open, true);
  });

  test("a client that does not read is cut for lack of progress, although its sender awaits", async () => {
    await using service = await serving({ progressTimeout: 0.2 });
    using client = await SocketClient.open(service.url);
    const socket = await service.accepted;
    client.ws.pause();
    const piece = Buffer.alloc(256 * 1024);
    const failure = (async () => {
      for (;;) await socket.send(piece);
    })().catch((error: unknown) => error);
    const ended = await socket.closed;
    assert.deepEqual(ended, { code: 1006, reason: "the client does not read" });
    assert.equal(((await failure) as { code?: unknown }).code, "WEBSOCKET_CLOSED");
  });

  test("a client that does not read cannot make a sender that does not await use up memory", async () => {
    await using service = await serving({ websocket: { ...limits, maxUnsent: 512 * 1024 } });
    using client = await SocketClient.open(service.url);
    const socket = await service.accepted;
    client.ws.pause();
    const piece = Buffer.alloc(64 * 1024);
    let sent = 0;
    while (socket.open) {
      void socket.send(piece);
      sent += 1;
      if (sent % 8 === 0) await delay(1);
      assert.ok(sent < 10_000);
    }
    const ended: WebSocketClosed = await socket.closed;
    assert.deepEqual(ended, { code: 1006, reason: "the client reads too slowly" });
  });

  test("a client that does not confirm the close is cut, and one that goes on sending is ignored", async () => {
    await using service = await serving({ websocket: limits });
    using connection = await openRaw(service.port, "/app/");
    const socket = await service.accepted;
    const closing = socket.close(1000);
    const talk = setInterval(() => connection.write(clientFrame("text", "and another thing")), 5);
    await connection.until(/\x88/);
    assert.equal(await socket.receive(), undefined);
    clearInterval(talk);
    assert.equal((await closing).code, 1006);
  });

  test("a client that sends before the response is limited", async () => {
    const entered = Promise.withResolvers<void>();
    await using host = await TestService.start({
      route: {
        "WS /": async (event) => {
          entered.resolve();
          await once(event.request.signal, "abort");
          return 403;
        },
      },
    });
    const socket = connect(host.port, "127.0.0.1");
    const over = new Promise((resolve) => socket.once("close", resolve));
    socket.on("error", () => undefined).write(handshake("/app/"));
    await entered.promise;
    for (let piece = 0; piece < 20; piece += 1) socket.write(Buffer.alloc(16 * 1024));
    await over;
    assert.equal(host.mount.active.size, 0);
  });
});

import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { describe, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import type { WebSocketEvent } from "#core/types.ts";
import { RawConnection } from "#test/support/raw.ts";
import { TestService } from "#test/support/service.ts";
import { clientFrame, handshake, SocketClient } from "#test/support/websocket.ts";
import { serving } from "#test/support/websocket_service.ts";

const echo = async (event: WebSocketEvent) => {
  const socket = event.accept();
  for await (const message of socket) await socket.send(message);
};

describe("messages", () => {
  test("text and bytes go both ways, in order, with the library and with Node's own client", async () => {
    await using host = await TestService.start({ route: { "WS /": echo } });
    using client = await SocketClient.open(host.url("/app/"));
    for (const message of ["", "grüß", Buffer.from([0, 255]), "x".repeat(60_000), Buffer.alloc(0)])
      client.send(message);
    assert.equal(await client.next(), "");
    assert.equal(await client.next(), "grüß");
    assert.deepEqual(await client.next(), Buffer.from([0, 255]));
    assert.equal(await client.next(), "x".repeat(60_000));
    assert.deepEqual(await client.next(), Buffer.alloc(0));
    assert.deepEqual(await client.close(3001, "enough"), { code: 3001, reason: "enough" });

    const own = new WebSocket(host.url("/app/").replace("http", "ws"));
    own.binaryType = "arraybuffer";
    await once(own, "open");
    own.send("hello");
    assert.equal(((await once(own, "message")) as [MessageEvent])[0].data, "hello");
    own.send(new Uint8Array([1, 2, 3]));
    const [binary] = (await once(own, "message")) as [MessageEvent];
    assert.deepEqual(new Uint8Array(binary.data), new Uint8Array([1, 2, 3]));
    own.close(1000);
    const [closing] = (await once(own, "close")) as [CloseEvent];
    assert.deepEqual([closing.code, closing.wasClean], [1000, true]);
  });

  test("messages of any length arrive whole and in order, whether or not the client accepts compression", async () => {
    const lengths = [0, 1, 124, 125, 126, 127, 255, 256, 2047, 2048, 2049, 65_535, 65_536];
    const texts = lengths.flatMap((length) => [
      "x".repeat(length),
      "ü".repeat(length / 2),
      `\ud800${"y".repeat(length)}`,
    ]);
    const messages = texts.flatMap((text) => [text, Buffer.from(text)]);
    const route = {
      "WS /": async (event: WebSocketEvent) => {
        const socket = event.accept();
        for (const message of messages) void socket.send(message);
        await socket.close();
      },
    };
    for (const compression of [false, true]) {
      await using host = await TestService.start({ route, websocket: { compression } });
      using client = await SocketClient.open(host.url("/app/"));
      for (const message of messages) {
        const sent = typeof message === "string" ? message.toWellFormed() : message;
        assert.deepEqual(await client.next(), sent);
      }
    }
  });

  test("frames sent before the response, and messages in fragments, are not lost", async () => {
    await using service = await serving();
    using connection = await RawConnection.open(service.port);
    connection.write(Buffer.concat([Buffer.from(handshake("/app/")), clientFrame("text", "early")]));
    connection.write(clientFrame("text", "fra", { final: false }));
    const socket = await service.accepted;
    assert.equal(await socket.receive(), "early");
    connection.write(clientFrame("ping", "in between"));
    connection.write(clientFrame("continuation", "gment"));
    assert.equal(await socket.receive(), "fragment");
    await connection.until(/in between/);
  });

  test("an iteration may be left and started again, and ends when the client closes", async () => {
    await using service = await serving();
    using client = await SocketClient.open(service.url);
    const socket = await service.accepted;
    for (const word of ["login", "a", "b"]) client.send(word);
    const taken: unknown[] = [];
    for await (const message of socket) {
      taken.push(message);
      break;
    }
    assert.equal(socket.open, true);
    client.ws.close(4000, "bye");
    for await (const message of socket) taken.push(message);
    assert.deepEqual(taken, ["login", "a", "b"]);
    assert.equal(await socket.receive(), undefined);
    assert.deepEqual(await socket.closed, { code: 4000, reason: "bye" });
    assert.equal(socket.open, false);
  });

  test("a message to a client that has left is refused, without an unhandled rejection", async () => {
    const unhandled: unknown[] = [];
    const note = (reason: unknown) => void unhandled.push(reason);
    process.on("unhandledRejection", note);
    await using service = await serving();
    const client = await SocketClient.open(service.url);
    const socket = await service.accepted;
    client.ws.terminate();
    assert.equal((await socket.closed).code, 1006);
    await assert.rejects(socket.send("x"), { code: "WEBSOCKET_CLOSED", message: /ended with 1006/ });
    void socket.send("nobody waits");
    await delay(5);
    process.off("unhandledRejection", note);
    assert.deepEqual(unhandled, []);
    assert.throws(() => socket.send(5 as unknown as string), /strings and bytes, not a number/);
  });

  test("the module closes with a code and a reason of its choice", async () => {
    await using service = await serving();
    using client = await SocketClient.open(service.url);
    const socket = await service.accepted;
    assert.throws(() => socket.close(1005), TypeError);
    assert.throws(() => socket.close(4000, "x".repeat(124)), RangeError);
    client.send("not wanted");
    const ended = await socket.close(4001, "done");
    assert.deepEqual(
      [await client.closed, ended],
      [
        { code: 4001, reason: "done" },
        { code: 4001, reason: "done" },
      ],
    );
    assert.equal(await socket.receive(), undefined);
  });
});

describe("handler and connection", () => {
  test("the connection outlasts the handler, the signal is aborted at its end, and nothing is retained afterwards", async () => {
    const events: WebSocketEvent[] = [];
    const left = Promise.withResolvers<void>();
    await using host = await TestService.start({
      route: {
        "WS /": (event) => {
          events.push(event);
          event.response.on_destroy = () => left.resolve();
          void event.accept().send("welcome");
        },
      },
    });
    using client = await SocketClient.open(host.url("/app/"));
    assert.equal(await client.next(), "welcome");
    const [event] = events;
    assert.ok(event !== undefined);
    const { signal } = event.request;
    assert.deepEqual([signal.aborted, event.response.finished, host.mount.active.size], [false, false, 1]);
    assert.deepEqual([...host.unreleased], [{ kind: "websocket" }]);
    // Nobody has requested messages, and nobody can later, so they are dropped.
    for (let round = 0; round < 500; round += 1) client.send("x".repeat(1000));
    await client.close();
    await left.promise;
    assert.deepEqual(
      [signal.aborted, event.response.finished, host.mount.active.size, host.unreleased.size],
      [true, true, 0, 0],
    );
  });

  test("an error after accept closes with 1011 and is logged with the request's id", async () => {
    const ids: string[] = [];
    await using host = await TestService.start({
      route: {
        "WS /sync": (event) => {
          ids.push(event.request.id);
          event.accept();
          throw new Error("sync fault");
        },
        "WS /async": async (event) => {
          for await (const message of event.accept()) throw new Error(`async fault ${message}`);
        },
        "WS /aborted": async (event) => {
          event.accept();
          throw new DOMException("of something else", "AbortError");
        },
      },
    });
    const sync = await SocketClient.open(host.url("/app/sync"));
    assert.deepEqual(await sync.closed, { code: 1011, reason: "" });
    const late = await SocketClient.open(host.url("/app/async"));
    late.send("now");
    assert.equal((await late.closed).code, 1011);
    assert.equal((await (await SocketClient.open(host.url("/app/aborted"))).closed).code, 1011);
    assert.equal(host.errors.length, 3);
    assert.match(host.errors.join("\n"), new RegExp(`${ids[0]} .*sync fault.*async fault now.*something else`, "s"));
  });

  test("a handler that is stopped by the end of the connection or of its module has not failed; a fault after it is logged", async () => {
    const ended = Promise.withResolvers<void>();
    let left = 4;
    const one = () => --left === 0 && ended.resolve();
    await using host = await TestService.start({
      route: {
        "WS /send": async (event) => {
          const socket = event.accept();
          await socket.closed.finally(one);
          await socket.send("too late");
        },
        "WS /signal": async (event) => {
          event.accept();
          await delay(60_000, undefined, { signal: event.request.signal }).finally(one);
        },
        "WS /leaving": async (event) => {
          event.accept();
          await delay(60_000, undefined, { signal: event.request.leaving }).finally(one);
        },
        "WS /fault": async (event) => {
          for await (const _ of event.accept());
          one();
          throw new Error("while cleaning up");
        },
      },
    });
    for (const path of ["send", "signal", "fault"]) await (await SocketClient.open(host.url(`/app/${path}`))).close();
    const leaving = await SocketClient.open(host.url("/app/leaving"));
    await host.mount.retire(1);
    assert.equal((await leaving.closed).code, 1001);
    await ended.promise;
    await delay(5);
    assert.equal(host.errors.length, 1);
    assert.match(host.errors.join(), /while cleaning up/);
  });

  test("a client that leaves before the handler decides is noticed, and cannot be accepted", async () => {
    for (const leave of ["end", "destroy"] as const) {
      const entered = Promise.withResolvers<void>();
      const outcome = Promise.withResolvers<unknown>();
      await using host = await TestService.start({
        route: {
          "WS /": async (event) => {
            const gone = once(event.request.signal, "abort");
            entered.resolve();
            await gone;
            try {
              event.accept();
            } catch (error) {
              outcome.resolve((error as { code?: unknown }).code);
              throw error;
            }
          },
        },
      });
      const socket = connect(host.port, "127.0.0.1");
      socket.on("error", () => undefined).write(handshake("/app/"));
      await entered.promise;
      socket[leave]();
      assert.equal(await outcome.promise, "WEBSOCKET_CLOSED");
      assert.deepEqual([host.errors, host.mount.active.size], [[], 0]);
    }
  });
});

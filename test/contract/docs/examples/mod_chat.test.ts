import assert from "node:assert/strict";
import { once } from "node:events";
import { describe, test } from "node:test";
import { WebSocket } from "ws";
import { createTestHost, type TestHost } from "#core/testing/index.ts";
import { exampleFile } from "./support.ts";

const start = (config: Record<string, unknown> = {}) => createTestHost({ modules: [exampleFile("chat")], config });

/** Somebody in a room. A test can wait for each message. */
class Guest {
  readonly socket: WebSocket;
  readonly #lines: string[] = [];
  #arrived = Promise.withResolvers<void>();

  private constructor(socket: WebSocket) {
    this.socket = socket;
    socket.on("message", (line) => {
      this.#lines.push(String(line));
      this.#arrived.resolve();
    });
  }

  static async enter({ url }: TestHost, path: string, headers: Record<string, string> = {}): Promise<Guest> {
    const guest = new Guest(new WebSocket(url(path).replace("http", "ws"), { headers }));
    await once(guest.socket, "open");
    return guest;
  }

  async next(): Promise<unknown> {
    while (this.#lines.length === 0) {
      await this.#arrived.promise;
      this.#arrived = Promise.withResolvers();
    }
    return JSON.parse(this.#lines.shift() as string);
  }

  async closed(): Promise<number> {
    const [code] = (await once(this.socket, "close")) as [number];
    return code;
  }

  async leave(): Promise<void> {
    this.socket.close();
    await this.closed();
  }
}

/** Resolves to the status with which a websocket is refused. */
async function refused({ url }: TestHost, path: string, headers: Record<string, string> = {}): Promise<number> {
  const socket = new WebSocket(url(path).replace("http", "ws"), { headers });
  socket.on("error", () => undefined);
  const [, response] = (await once(socket, "unexpected-response")) as [unknown, { statusCode: number }];
  socket.terminate();
  return response.statusCode;
}

describe("the example mod_chat", () => {
  test("serves its page", async () => {
    await using running = await start();
    assert.match(await (await running.fetch("/chat/")).text(), /new WebSocket\(url\)/);
  });

  test("sends a message to everybody in the room and to nobody else", async () => {
    await using running = await start();
    const ada = await Guest.enter(running, "/chat/room/lobby?name=Ada");
    const bob = await Guest.enter(running, "/chat/room/lobby?name=Bob+B.");
    const eve = await Guest.enter(running, "/chat/room/other");
    ada.socket.send(" Hello ");
    bob.socket.send("Hi");
    const said = [
      { name: "Ada", text: "Hello" },
      { name: "Bob B.", text: "Hi" },
    ];
    const heard = [await ada.next(), await ada.next()] as typeof said;
    assert.deepEqual(
      heard.toSorted((a, b) => a.name.localeCompare(b.name)),
      said,
    );
    assert.deepEqual([await bob.next(), await bob.next()], heard);
    eve.socket.send("alone");
    assert.deepEqual(await eve.next(), { name: "somebody", text: "alone" });
  });

  test("sends the last messages to newcomers, even after a reload, which closes with 1012", async () => {
    await using running = await start({ chat_history: 2 });
    const ada = await Guest.enter(running, "/chat/room/lobby?name=Ada");
    for (const text of ["one", "two", "three"]) ada.socket.send(text);
    for (let count = 0; count < 3; count += 1) await ada.next();
    const closed = ada.closed();
    await running.host.reload("chat");
    assert.equal(await closed, 1012);
    const again = await Guest.enter(running, "/chat/room/lobby?name=Ada");
    assert.deepEqual(await again.next(), { name: "Ada", text: "two" });
    assert.deepEqual(await again.next(), { name: "Ada", text: "three" });
  });

  test("closes with 1001 when it is unloaded, and no longer exists then", async () => {
    await using running = await start();
    const ada = await Guest.enter(running, "/chat/room/lobby");
    const closed = ada.closed();
    await running.host.unload("chat");
    assert.equal(await closed, 1001);
    assert.equal(await refused(running, "/chat/room/lobby"), 404);
  });

  test("rejects binary messages, long messages, invalid room names and pages of other sites", async () => {
    await using running = await start();
    const ada = await Guest.enter(running, "/chat/room/lobby");
    const bytes = ada.closed();
    ada.socket.send(Buffer.from("bytes"));
    assert.equal(await bytes, 1003);
    const bob = await Guest.enter(running, "/chat/room/lobby");
    const long = bob.closed();
    bob.socket.send("x".repeat(5000));
    assert.equal(await long, 1009);
    assert.equal(await refused(running, "/chat/room/a.b"), 404);
    assert.equal(await refused(running, "/chat/room/lobby", { origin: "https://elsewhere.example" }), 403);
  });

  test("limits the number of rooms, and forgets empty ones", async (t) => {
    await using running = await start({ chat_rooms: 1 });
    const eve = await Guest.enter(running, "/chat/room/first");
    assert.equal(await refused(running, "/chat/room/second"), 503);
    await eve.leave();
    await t.waitFor(() => Guest.enter(running, "/chat/room/second"), { interval: 5, timeout: 60_000 });
  });

  test("remembers the messages of at most as many empty rooms as may be open", async (t) => {
    await using running = await start({ chat_rooms: 2 });
    const sayIn = async (room: string, text: string) => {
      const guest = await Guest.enter(running, `/chat/room/${room}`);
      guest.socket.send(text);
      const { text: first } = (await guest.next()) as { text: string };
      await guest.leave();
      const isEmpty = () => assert.match(running.log().at(-1) ?? "", new RegExp(`The room ${room} is empty`));
      await t.waitFor(isEmpty, { interval: 5, timeout: 60_000 });
      return first;
    };
    for (const room of ["one", "two", "three"]) assert.equal(await sayIn(room, "before"), "before");
    assert.equal(await sayIn("three", "after"), "before");
    assert.equal(await sayIn("one", "after"), "after");
  });
});

/** Bytes that are carried between two connections in memory that is used again. */
import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { connect, createServer, Socket } from "node:net";
import { describe, type TestContext, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { carry } from "#core/relay/carry.ts";
import { joinConnections } from "#core/relay/tunnel.ts";
import { keepsOnread } from "#core/util/patches/node/onread.ts";
import { eventually } from "#test/support/eventually.ts";

/** Opens a connection. Returns the ends of the client and of the server. */
async function connection(t: TestContext): Promise<{ client: Socket; server: Socket }> {
  const listener = createServer({ allowHalfOpen: true, pauseOnConnect: true }).listen(0, "127.0.0.1");
  await once(listener, "listening");
  const client = connect({ port: (listener.address() as { port: number }).port, allowHalfOpen: true });
  const [server] = (await once(listener, "connection")) as [Socket];
  listener.close();
  t.after(() => {
    client.destroy();
    server.destroy();
  });
  return { client, server };
}

/** Two clients whose connections are joined. */
async function joined(t: TestContext): Promise<{ one: Socket; other: Socket; ends: readonly [Socket, Socket] }> {
  const left = await connection(t);
  const right = await connection(t);
  joinConnections(left.server, right.server);
  return { one: left.client, other: right.client, ends: [left.server, right.server] };
}

const digest = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");

/** Reads a connection to its end, with pauses, so that the sender has to wait. */
async function slowly(socket: Socket): Promise<string> {
  await sleep(100);
  const hash = createHash("sha256");
  // An iterator would destroy the connection at the end, and with it what is still to be sent.
  socket.on("data", (piece) => {
    hash.update(piece);
    socket.pause();
    setTimeout(() => socket.resume(), 1);
  });
  await once(socket, "end");
  return hash.digest("hex");
}

describe("joined connections", () => {
  test("carry large and small messages of many connections unchanged, also to slow readers", async (t) => {
    const received = await Promise.all(
      Array.from({ length: 8 }, async (_, at) => {
        const { one, other } = await joined(t);
        const sent = { there: randomBytes(12_000_000 + at), back: randomBytes(1_000_000 + at) };
        one.write(sent.there.subarray(0, 5));
        one.write(sent.there.subarray(5, 70_000));
        one.end(sent.there.subarray(70_000));
        other.end(sent.back);
        const [there, back] = await Promise.all([slowly(other), slowly(one)]);
        return [there === digest(sent.there), back === digest(sent.back)];
      }),
    );
    assert.deepEqual(
      received,
      Array.from({ length: 8 }, () => [true, true]),
    );
  });

  test("read no further than the other end takes", async (t) => {
    const { one, other, ends } = await joined(t);
    const bytes = randomBytes(32 << 20);
    one.end(bytes);
    let before = -1;
    await eventually("it pauses", async () => {
      const isStill = ends[0].bytesRead === before && before > 0;
      before = ends[0].bytesRead;
      await sleep(50);
      return isStill;
    });
    assert.ok(ends[0].bytesRead < bytes.length, "all of it was read");
    assert.ok(ends[1].writableLength <= 512 * 1024, `${ends[1].writableLength} bytes wait`);
    assert.equal(await slowly(other), digest(bytes));
  });

  test("carry what had arrived before they were joined first", async (t) => {
    const left = await connection(t);
    const right = await connection(t);
    left.client.write("first ");
    left.server.once("readable", () => undefined);
    await eventually("it arrives", () => left.server.readableLength === 6);
    joinConnections(left.server, right.server);
    left.client.end("second");
    let text = "";
    for await (const piece of right.client) text += piece;
    assert.equal(text, "first second");
  });

  test("end together: the end of one is the end of the other", async (t) => {
    const { one, other } = await joined(t);
    other.resume();
    one.end("last");
    await once(other, "end");
    other.end();
    await Promise.all([once(one.resume(), "close"), once(other, "close")]);
  });
});

describe("memory that is used again", () => {
  test("is read into by accepted connections with this version of Node.js", async (t) => {
    assert.equal(keepsOnread(), true);
    const left = await connection(t);
    const right = await connection(t);
    assert.equal(carry(left.server, right.server), true);
  });

  test("is not used for connections that Node.js reads in another way", async (t) => {
    class OtherSocket extends Socket {}
    const { server } = await connection(t);
    assert.equal(carry(new OtherSocket(), server), false);
    const WithoutOnread = function WithoutOnread() {
      return new Socket();
    };
    assert.equal(keepsOnread(WithoutOnread as unknown as typeof Socket), false);
  });
});

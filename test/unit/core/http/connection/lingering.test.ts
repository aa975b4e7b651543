/** Clients that still send when their connection ends can read the whole response. */
import assert from "node:assert/strict";
import { connect } from "node:net";
import { describe, test } from "node:test";
import type { HttpProvider } from "#core/types.ts";
import { TestService } from "#test/support/service.ts";

const MIB = 1024 * 1024;
const get = (fields = "") => `GET /app/page HTTP/1.1\r\nHost: x\r\n${fields}\r\n`;
const page = "page ".repeat(20_000);

/**
 * Returns everything that a client receives which sends more after its request, and again when the
 * response begins; rejects on a reset.
 */
async function exchange(port: number, text: string): Promise<string> {
  const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
  socket.setEncoding("latin1");
  const more = Buffer.alloc(MIB, "x");
  socket.write(text, "latin1");
  socket.write(more);
  let received = "";
  for await (const piece of socket) {
    if (received === "") await new Promise((sent) => socket.write(more, sent));
    received += piece;
  }
  socket.end();
  return received;
}

const cases: Readonly<Record<string, readonly [text: string, status: number]>> = {
  "a malformed request": ["GET  / HTTP/1.1\r\nbad header\r\n\r\n", 400],
  "a head that is too long": [`GET / HTTP/1.1\r\nHost: x\r\nX: ${"y".repeat(20_000)}`, 431],
  "the last request of a connection": [get("Connection: close\r\n"), 200],
  "a malformed request behind another": [`${get()}bad\r\n\r\n`, 400],
  "a body that is not read": [`POST /app/unread HTTP/1.1\r\nHost: x\r\nContent-Length: ${9 * MIB}\r\n\r\n`, 404],
};

describe("the whole response is read by a client that sends a megabyte more", () => {
  for (const [title, [text, status]] of Object.entries(cases)) {
    test(title, async () => {
      await using service = await TestService.start({ route: { "GET /page": () => page } });
      for (let round = 0; round < 3; round += 1) {
        const received = await exchange(service.port, text);
        const responses = received.split(/(?=HTTP\/1\.1 \d)/);
        const last = responses.at(-1) as string;
        assert.match(last, new RegExp(`^HTTP/1.1 ${status} `));
        const length = Number(/content-length: (\d+)/i.exec(last)?.[1]);
        assert.equal(last.length - last.indexOf("\r\n\r\n") - 4, length);
      }
    });
  }
});

test("a connection whose client never stops sending is closed after some megabytes", async () => {
  await using service = await TestService.start({ route: { "GET /page": () => page } });
  const socket = connect({ port: service.port, host: "127.0.0.1", allowHalfOpen: true });
  socket.on("error", () => undefined).resume();
  socket.write("bad\r\n\r\n");
  const piece = Buffer.alloc(MIB);
  let taken = 0;
  const send = (): unknown =>
    socket.write(piece, (error) => {
      if (error) return;
      taken += 1;
      send();
    });
  send();
  await new Promise((closed) => socket.once("close", closed));
  // The system buffers some bytes in addition to those that the host reads.
  assert.ok(taken >= 1 && taken < 64, `${taken} MiB were taken`);
});

test("a request with a malformed body is over when its error response is sent, before the connection is closed", async () => {
  const destroyed = Promise.withResolvers<void>();
  const provider: HttpProvider = {
    streaming_uploads: true,
    route: {
      "POST /late": async ({ response }) => {
        response.on_destroy = destroyed.resolve;
        await destroyed.promise;
        return "late";
      },
    },
  };
  await using service = await TestService.start(provider);
  const socket = connect({ port: service.port, host: "127.0.0.1", allowHalfOpen: true });
  let received = "";
  socket.setEncoding("latin1").on("data", (piece: string) => {
    received += piece;
  });
  socket.write("POST /app/late HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nno size\r\n");
  const ended = new Promise((resolve) => socket.once("end", resolve));
  await destroyed.promise;
  let isClosed = false;
  service.service.listeners.whenEmpty(() => {
    isClosed = true;
  });
  assert.equal(isClosed, false);
  await ended;
  socket.end();
  assert.match(received, /^HTTP\/1.1 400 /);
  assert.deepEqual(service.errors, []);
});

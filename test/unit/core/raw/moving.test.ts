/**
 * A connection that makes progress is never reset. Timers consider what has arrived, and not when
 * this process or the client could look at it.
 */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import type { HttpSettings } from "#core/http/index.ts";
import { RawConnection } from "#test/support/raw.ts";
import { TestService } from "#test/support/service.ts";

/** Blocks the event loop of this process, like a suspension or a long computation. */
function stall(milliseconds: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, milliseconds);
}

const timers = { headTimeout: 0.3, idleTimeout: 0.6, progressTimeout: 0.6, progressBytes: 1 };

const start = (given: Partial<HttpSettings> = {}) =>
  TestService.start(
    {
      streaming_uploads: true,
      route: {
        GET: () => "here",
        // Ends with the part that it waits for, before the end of the body, like a reader of
        // multipart.
        "POST /first": async ({ request }) => {
          for await (const piece of request.body_stream) return `took ${piece.length}`;
          return "nothing";
        },
        "POST /all": async ({ request }) => {
          let bytes = 0;
          for await (const piece of request.body_stream) bytes += piece.length;
          return `took ${bytes}`;
        },
        "GET /stream": () =>
          (async function* () {
            for (let at = 0; at < 256; at += 1) yield Buffer.alloc(65_536, 97);
            yield "end";
          })(),
      },
    },
    { ...timers, ...given },
  );

const get = "GET /app HTTP/1.1\r\nHost: x\r\n\r\n";
const post = (path: string) => `POST /app${path} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n`;
const chunk = "5\r\nhello\r\n";

describe("a connection that makes progress is not reset, even if", { concurrency: true }, () => {
  test("the last bytes of a body come long after the response, which did not wait for them", async () => {
    await using service = await start();
    using connection = await RawConnection.open(service.port);
    connection.write(post("/first") + chunk);
    assert.match((await connection.until(/took 5/)).input, /^HTTP\/1\.1 200 /);
    for (let at = 0; at < 15; at += 1) {
      await wait(200);
      connection.write(chunk);
    }
    connection.write(`0\r\n\r\n${get}`);
    await connection.until(/here/);
  });

  test("it was opened in advance and is first used when other timers have expired", async () => {
    await using service = await start({ idleTimeout: 60 });
    using connection = await RawConnection.open(service.port);
    await wait(450);
    assert.deepEqual([connection.text, connection.closed], ["", false]);
    connection.write(get);
    await connection.until(/here/);
  });
});

// These tests block the event loop, and with it each other.
describe("a process that was suspended", () => {
  test("accepts a request head whose rest has arrived meanwhile", async () => {
    await using service = await start();
    using connection = await RawConnection.open(service.port);
    connection.write("GET /app HTTP/1.1\r\n");
    await wait(50);
    connection.write("Host: x\r\n\r\n");
    stall(1200);
    await connection.until(/here/);
  });

  test("accepts a request on an idle connection that arrived before its time was over", async () => {
    await using service = await start();
    using connection = await RawConnection.open(service.port);
    connection.write(get);
    await connection.until(/here/);
    connection.text = "";
    await wait(100);
    connection.write(get);
    stall(2500);
    await connection.until(/here/);
  });

  test("accepts a body that has arrived meanwhile, and sends what its client was ready to receive", async () => {
    await using service = await start({ progressTimeout: 3 });
    using sending = await RawConnection.open(service.port, { timeout: 60_000 });
    using reading = await RawConnection.open(service.port, { timeout: 60_000 });
    sending.write(post("/all") + chunk);
    reading.socket.pause();
    reading.write("GET /app/stream HTTP/1.1\r\nHost: x\r\n\r\n");
    // The first check after a stall only records what has moved. The second one would cut a flow
    // without progress, so there are two stalls.
    for (let at = 0; at < 2; at += 1) {
      await wait(100);
      sending.write(chunk);
      stall(3200);
    }
    sending.write("0\r\n\r\n");
    reading.socket.resume();
    let tail = "";
    reading.socket.on("data", (text: string) => (tail = (tail + text).slice(-20)));
    await sending.until(/took 15/);
    while (!tail.includes("end")) {
      assert.ok(!reading.closed, "it was cut");
      await wait(10);
    }
  });
});

/**
 * What resets a connection that moves: nothing. Timers are judged by what has arrived, not by when
 * this process, or the client's, came to look.
 */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import type { HttpSettings } from "#core/http/index.ts";
import { RawConnection } from "#test/support/raw.ts";
import { TestService } from "#test/support/service.ts";

/** Holds the loop of this process, as a suspension or a long computation does. */
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
        // Ends with the part that it waits for, as a reader of multipart does: before the end of
        // the body.
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

describe("a connection that moves is not reset", { concurrency: true }, () => {
  test("the last bytes of a body come long after the answer, which did not wait for them", async () => {
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

  test("a connection that was opened ahead of need is used when other timers are over", async () => {
    await using service = await start({ idleTimeout: 60 });
    using connection = await RawConnection.open(service.port);
    await wait(450);
    assert.deepEqual([connection.text, connection.closed], ["", false]);
    connection.write(get);
    await connection.until(/here/);
  });
});

// These hold the loop, and with it each other.
describe("a process that was suspended", () => {
  test("takes in a request head whose rest came meanwhile", async () => {
    await using service = await start();
    using connection = await RawConnection.open(service.port);
    connection.write("GET /app HTTP/1.1\r\n");
    await wait(50);
    connection.write("Host: x\r\n\r\n");
    stall(1200);
    await connection.until(/here/);
  });

  test("takes in a request on a kept connection that came before its time was over", async () => {
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

  test("takes in a body that came meanwhile, and sends what its client would have taken", async () => {
    await using service = await start({ progressTimeout: 3 });
    using sending = await RawConnection.open(service.port, { timeout: 60_000 });
    using reading = await RawConnection.open(service.port, { timeout: 60_000 });
    sending.write(post("/all") + chunk);
    reading.socket.pause();
    reading.write("GET /app/stream HTTP/1.1\r\nHost: x\r\n\r\n");
    // Only in the second one is it seen that nothing has moved.
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

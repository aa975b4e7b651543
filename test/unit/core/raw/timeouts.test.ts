/** Timeouts measure the progress of slow clients, not the duration of their requests. */
import assert from "node:assert/strict";
import { EventEmitter, once } from "node:events";
import { describe, test } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { withHost } from "#test/support/host.ts";
import { RawConnection, rawExchange } from "#test/support/raw.ts";

/** Emits the name that the client chose, when a handler is notified that its client is gone. */
const gone = new EventEmitter();
/** Milliseconds of the progress timeout below. */
const period = 1500;

const host = withHost({
  config: {
    http_head_timeout: 2,
    http_progress_timeout: period / 1000,
    http_progress_bytes: 1024,
    http_idle_timeout: 2,
  },
  modules: {
    mod_http_slow(module) {
      module.depends("http");
      module.provides("http", {
        route: {
          GET: () => "quick",
          "GET /last": () => "the last",
          "POST /sum": ({ request }) => `${request.body_bytes.length}`,
          async "GET /thinking"() {
            await wait(period * 2);
            return "took a while";
          },
          "GET /endless/*"({ response, request }, name) {
            response.on_destroy = () => gone.emit(`${name} on_destroy`);
            request.signal.addEventListener("abort", () => gone.emit(`${name} signal`));
            return (async function* () {
              for (;;) yield Buffer.alloc(65_536);
            })();
          },
        },
      });
      module.provides("http", {
        name: "slow-stream",
        streaming_uploads: true,
        route: {
          async "POST /"({ request }) {
            let bytes = 0;
            for await (const piece of request.body_stream) bytes += piece.length;
            return `${bytes}`;
          },
        },
      });
    },
  },
});

describe("a timeout", { concurrency: true }, () => {
  for (const tls of [false, true]) {
    const over = tls ? "over TLS" : "over plain TCP";
    const port = () => (tls ? host().https : host().http);

    test(`does not count a head that is not read because requests before it wait (${over})`, async () => {
      using connection = await RawConnection.open(port(), { tls, timeout: 60_000 });
      const count = 4000;
      connection.write("GET /slow/thinking HTTP/1.1\r\nHost: x\r\n\r\n");
      connection.write("GET /slow HTTP/1.1\r\nHost: x\r\n\r\n".repeat(count));
      connection.write("GET /slow/last HTTP/1.1\r\nHost: x\r\n\r\n");
      await connection.until(/the last/);
      assert.equal(connection.text.match(/HTTP\/1\.1 200/g)?.length, count + 2);
      assert.doesNotMatch(connection.text, /HTTP\/1\.1 [^2]/);
    });

    test(`counts a head that stays incomplete behind requests that wait (${over})`, async () => {
      const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`;
      const sent = `${get("/slow/thinking")}${get("/slow")}GET /slow HTTP/1.1\r\n`;
      const text = await rawExchange(port(), sent, { tls, timeout: 60_000 });
      assert.deepEqual(text.match(/HTTP\/1\.1 \d+/g), ["HTTP/1.1 200", "HTTP/1.1 200", "HTTP/1.1 408"]);
    });

    test(`causes a 408 and closes the connection if a request head stays incomplete, ${over}`, async () => {
      using connection = await RawConnection.open(port(), { tls });
      connection.write("GET /slow HTTP/1.1\r\nHost: x\r\n");
      assert.match(await connection.end(), /^HTTP\/1\.1 408 /);
    });

    test(`cuts a request head that arrives too slowly, although bytes keep coming, ${over}`, async () => {
      using connection = await RawConnection.open(port(), { tls });
      connection.write("GET /slow HTTP/1.1\r\nHost: x\r\nX-Drip: ");
      const drip = setInterval(() => connection.write("x"), 40);
      try {
        assert.match(await connection.end(), /^HTTP\/1\.1 408 /);
      } finally {
        clearInterval(drip);
      }
    });

    for (const path of ["/slow/sum", "/slow-stream/"]) {
      test(`causes a 408 and closes the connection if a body arrives byte by byte, ${path} ${over}`, async () => {
        using connection = await RawConnection.open(port(), { tls });
        connection.write(`POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n`);
        const drip = setInterval(() => connection.write("x"), 40);
        try {
          assert.match(await connection.end(), /^HTTP\/1\.1 408 /);
        } finally {
          clearInterval(drip);
        }
      });

      test(`does not affect a body that arrives fast enough, however long it takes, ${path} ${over}`, async () => {
        using connection = await RawConnection.open(port(), { tls });
        const pieces = 24;
        connection.write(`POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Length: ${pieces * 1024}\r\n\r\n`);
        for (let n = 0; n < pieces; n++) {
          connection.write("x".repeat(1024));
          await wait(period / 8);
        }
        await connection.until(new RegExp(`\r\n\r\n${pieces * 1024}$`));
      });
    }

    test(`cuts a client that does not read, and notifies its handler, ${over}`, async () => {
      const name = `slow-${tls}`;
      const both = Promise.all([once(gone, `${name} on_destroy`), once(gone, `${name} signal`)]);
      using connection = await RawConnection.open(port(), { tls });
      connection.write(`GET /slow/endless/${name} HTTP/1.1\r\nHost: x\r\n\r\n`);
      await connection.until(/HTTP\/1\.1 200 /);
      connection.socket.pause();
      await both;
      connection.socket.resume();
      await connection.end();
    });
  }

  test("does not affect a handler that takes longer than the progress timeout", async () => {
    using connection = await RawConnection.open(host().http);
    connection.write("GET /slow/thinking HTTP/1.1\r\nHost: x\r\n\r\n");
    await connection.until(/took a while$/);
  });

  test("closes an idle connection", async () => {
    using connection = await RawConnection.open(host().http);
    connection.write("GET /slow HTTP/1.1\r\nHost: x\r\n\r\n");
    await connection.until(/quick$/);
    await connection.end();
  });

  test("closes a connection on which nothing is ever sent", async () => {
    using connection = await RawConnection.open(host().http);
    assert.doesNotMatch(await connection.end(), / 200 /);
  });

  test("closes a connection whose TLS handshake never begins", async () => {
    using connection = await RawConnection.open(host().https);
    await connection.end();
  });

  test("does not apply to a client that leaves early, which its handler notices", async () => {
    const heard = once(gone, "early signal");
    const connection = await RawConnection.open(host().http);
    connection.write("GET /slow/endless/early HTTP/1.1\r\nHost: x\r\n\r\n");
    await connection.until(/HTTP\/1\.1 200 /);
    connection.destroy();
    await heard;
    assert.match(
      await rawExchange(host().http, "GET /slow HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"),
      /quick$/,
    );
  });
});

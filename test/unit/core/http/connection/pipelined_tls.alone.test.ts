/**
 * Pipelined requests over TLS work as over plain TCP, although one network read contains several
 * records that Node parses one by one.
 */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { after, describe, test } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { serving, startHost } from "#test/support/host.ts";
import { RawConnection } from "#test/support/raw.ts";
import { clientFrame, handshake } from "#test/support/websocket.ts";

const gate = Promise.withResolvers<void>();
const running = await startHost({
  config: { http_max_content_size: 10_000_000 },
  modules: {
    mod_http_app: serving({
      route: {
        "GET /now/*": (_event, name) => `<${name}>`,
        async "GET /later/*"(_event, name) {
          await wait(50);
          return `<${name}>`;
        },
        async "GET /held"() {
          await gate.promise;
          return "<held>";
        },
        async "POST /*"({ request }, name) {
          await wait(1);
          const bytes = request.body_bytes;
          return `<${name} ${bytes.length} ${createHash("sha1").update(bytes).digest("hex")}>`;
        },
        "WS /socket": async (event) => {
          const socket = event.accept();
          for await (const message of socket) await socket.send(`<echo ${message}>`);
        },
      },
    }),
  },
});
after(() => running.stop());

const get = (path: string) => `GET /app/${path} HTTP/1.1\r\nHost: x\r\n\r\n`;
const replies = (text: string) => [...text.matchAll(/<(.*?)>/g)].map(([, found]) => found);
const names = (count: number) => Array.from({ length: count }, (_, at) => String(at));

/** POST requests with different contents, and the responses to them. */
function posts(sizes: readonly number[]): { bytes: Buffer; expected: string[] } {
  const bodies = sizes.map((size, at) => Buffer.alloc(size, `${at}-${"contents of a body ".repeat(at + 1)}`));
  const head = (at: number, size: number) => `POST /app/${at} HTTP/1.1\r\nHost: x\r\nContent-Length: ${size}\r\n\r\n`;
  return {
    bytes: Buffer.concat(bodies.flatMap((body, at) => [Buffer.from(head(at, body.length)), body])),
    expected: bodies.map((body, at) => `${at} ${body.length} ${createHash("sha1").update(body).digest("hex")}`),
  };
}

const gets = (count: number) =>
  names(count)
    .map((name) => get(`now/${name}`))
    .join("");

for (const tls of [true, false]) {
  const open = () => RawConnection.open(tls ? running.https : running.http, { tls, timeout: 60_000 });

  describe(`pipelined over ${tls ? "TLS" : "plain TCP"}`, () => {
    test("a thousand requests in one write get their responses in order", async () => {
      using connection = await open();
      connection.write(gets(1000));
      await connection.until(/<999>/);
      assert.deepEqual(replies(connection.text), names(1000));
      connection.write(get("now/last"));
      await connection.until(/<last>/);
    });

    for (const [what, sizes] of Object.entries({
      "a small body and a large one": [10, 70_000],
      "several large bodies": [300_000, 300_000, 300_000, 300_000],
      "bodies of megabytes": [1_500_000, 1_500_000, 1_500_000],
      "bodies of all sizes": [70_000, 10, 0, 16_384, 16_383, 1_200_000, 3, 200_000, 1],
    })) {
      test(`${what} reach their own requests, whole`, async () => {
        const { bytes, expected } = posts(sizes);
        using connection = await open();
        connection.write(bytes);
        connection.write(get("now/last"));
        await connection.until(/<last>/);
        assert.deepEqual(replies(connection.text), [...expected, "last"]);
      });
    }

    test("a client that ends its side after its last request first gets the responses to the earlier ones", async () => {
      using connection = await open();
      connection.socket.end(
        [get("later/a"), get("later/b"), ...names(1500).map((name) => get(`now/${name}`))].join(""),
      );
      assert.deepEqual(replies(await connection.end()), ["a", "b", ...names(1500)]);
    });

    test("a malformed request after others gets one response, after theirs", async () => {
      using connection = await open();
      connection.write(`${get("later/a")}${gets(1000)}nonsense\r\n\r\n`);
      connection.write(get("now/never").repeat(1000));
      const text = await connection.end();
      assert.deepEqual(replies(text).slice(0, 1001), ["a", ...names(1000)]);
      assert.deepEqual(text.match(/HTTP\/1\.1 [^2]\d+/g), ["HTTP/1.1 400"]);
      assert.ok(!text.includes("<never>"));
    });

    test("a connection becomes a websocket after them", async () => {
      using connection = await open();
      connection.write(get("later/a") + gets(1000));
      await connection.until(/<999>/);
      // Early frames that need more than one record.
      const frames = ["one", "x".repeat(20_000), "two"].map((text) => clientFrame("text", text));
      connection.write(Buffer.concat([Buffer.from(handshake("/app/socket")), ...frames]));
      await connection.until(/<echo two>/);
      assert.match(connection.text, /HTTP\/1\.1 101 .*<echo one>.*<echo x{20000}>.*<echo two>/s);
    });

    test("a client that leaves does not affect other clients", async () => {
      for (let at = 0; at < 20; at += 1) {
        using left = await open();
        left.write(get("later/a").repeat(1000));
        if (at % 2 === 0) await left.until(/<a>/);
      }
      using connection = await open();
      connection.write(gets(1000));
      await connection.until(/<999>/);
      assert.deepEqual(replies(connection.text), names(1000));
    });

    test("pipelined requests stay with the client while a response is being made", async () => {
      using connection = await open();
      connection.write(get("held"));
      const piece = Buffer.from(get("now/ahead").repeat(25_000));
      let taken = 0;
      for (let at = 0; at < 64; at += 1) connection.socket.write(piece, () => (taken += 1));
      using other = await open();
      for (let at = 0; at < 300; at += 1) {
        other.write(get(`now/${at}`));
        await other.until(new RegExp(`<${at}>`));
      }
      // The buffers of the system accept some bytes.
      assert.ok(taken < 32, `${taken} MB are taken`);
      assert.equal(connection.text, "");
      connection.socket.destroy();
      await once(connection.socket, "close");
    });
  });
}

/**
 * Requests that only raw sockets can send: in pieces, pipelined, with ambiguous lengths, or with
 * very long heads.
 */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { withHost } from "#test/support/host.ts";
import { RawConnection, rawExchange } from "#test/support/raw.ts";

/** Second requests that reached a handler, by the name given to each. */
const smuggled: string[] = [];

const host = withHost({
  config: { http_max_content_size: 50_000 },
  modules: {
    mod_http_raw(module) {
      module.depends("http");
      module.provides("http", {
        route: {
          GET: () => "hello",
          async "GET /wait/*"(_event, path) {
            await wait(Number(path));
            return `waited ${path};`;
          },
          "POST /sum": ({ request }) => `sum ${request.body_bytes.length};`,
          "GET /smuggled/*"(_event, name) {
            smuggled.push(name);
            return "smuggled";
          },
          "POST /refuse": () => 403,
          "GET /throw"() {
            throw new Error("on purpose");
          },
        },
      });
      module.provides("http", {
        name: "unread",
        streaming_uploads: true,
        route: {
          "POST /": () => 403,
          async "POST /first"({ request, response }) {
            for await (const piece of request.body_stream) return response.send(`first ${piece.length};`);
            return 400;
          },
        },
      });
    },
  },
});

const get = (path: string, more = "") => `GET ${path} HTTP/1.1\r\nHost: x\r\n${more}\r\n`;
const closing = "Connection: close\r\n";
const second = (name: string) => get(`/raw/smuggled/${name}`);

/**
 * Requests whose end two parties could see at different positions. A second request follows each of
 * them.
 */
const smugglingShapes: Record<string, string> = {
  "Content-Length beside Transfer-Encoding": `POST /raw/sum HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
  "Transfer-Encoding beside Content-Length": `POST /raw/sum HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n`,
  "two different Content-Length lines": `POST /raw/sum HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabc`,
  "a list of lengths": `POST /raw/sum HTTP/1.1\r\nHost: x\r\nContent-Length: 3, 4\r\n\r\nabc`,
  "a length with a sign": `POST /raw/sum HTTP/1.1\r\nHost: x\r\nContent-Length: +3\r\n\r\nabc`,
  "a negative length": `POST /raw/sum HTTP/1.1\r\nHost: x\r\nContent-Length: -3\r\n\r\nabc`,
  "a hexadecimal length": `POST /raw/sum HTTP/1.1\r\nHost: x\r\nContent-Length: 0x3\r\n\r\nabc`,
  "a length that is no number": `POST /raw/sum HTTP/1.1\r\nHost: x\r\nContent-Length: abc\r\n\r\nabc`,
  "a length beyond counting": `POST /raw/sum HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999999\r\n\r\nabc`,
  "an unknown transfer coding": `POST /raw/sum HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n`,
  "chunked not last": `POST /raw/sum HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n`,
  "a blank before the colon": `POST /raw/sum HTTP/1.1\r\nHost: x\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n`,
  "a chunk size that is no number": `POST /raw/sum HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n0\r\n\r\n`,
  "a chunk size beyond counting": `POST /raw/sum HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\nabc\r\n0\r\n\r\n`,
  "a chunk longer than its size": `POST /raw/sum HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcdef\r\n0\r\n\r\n`,
  "a folded header": `POST /raw/sum HTTP/1.1\r\nHost: x\r\nX-Folded: a\r\n b\r\nContent-Length: 0\r\n\r\n`,
  "a folded first header": `POST /raw/sum HTTP/1.1\r\n Host: x\r\nContent-Length: 0\r\n\r\n`,
  "bare line feeds": `POST /raw/sum HTTP/1.1\nHost: x\nContent-Length: 0\n\n`,
  "a bare carriage return": `POST /raw/sum HTTP/1.1\r\nHost: x\rContent-Length: 0\r\n\r\n`,
  "a NUL in a header": `POST /raw/sum HTTP/1.1\r\nHost: x\r\nX-Nul: a\0b\r\nContent-Length: 0\r\n\r\n`,
};

for (const tls of [false, true]) {
  const port = () => (tls ? host().https : host().http);
  describe(tls ? "HTTP/1.1 over TLS" : "HTTP/1.1 over TCP", { concurrency: true }, () => {
    test("pipelined requests get their responses in order", async () => {
      const pipeline = [get("/raw/wait/60"), get("/raw/wait/0"), get("/raw/wait/20"), get("/raw", closing)];
      const text = await rawExchange(port(), pipeline.join(""), { tls });
      assert.deepEqual(text.match(/waited \d+;|hello/g), ["waited 60;", "waited 0;", "waited 20;", "hello"]);
    });

    test("the bodies of pipelined requests belong to their own requests", async () => {
      const post = (bytes: number) =>
        `POST /raw/sum HTTP/1.1\r\nHost: x\r\nContent-Length: ${bytes}\r\n\r\n${"x".repeat(bytes)}`;
      const chunked =
        "POST /raw/sum HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;ext=1\r\nde\r\n0\r\nX-Trailer: y\r\n\r\n";
      const text = await rawExchange(port(), [post(3), chunked, post(0), post(7), get("/raw", closing)].join(""), {
        tls,
      });
      assert.deepEqual(text.match(/sum \d+;/g), ["sum 3;", "sum 5;", "sum 0;", "sum 7;"]);
    });

    test("a request may arrive in any pieces", async () => {
      const bytes = `POST /raw/sum HTTP/1.1\r\nHost: x\r\n${closing}Content-Length: 11\r\n\r\nhello world`;
      using connection = await RawConnection.open(port(), { tls });
      for (const byte of bytes) {
        connection.write(byte);
        await new Promise(setImmediate);
      }
      assert.match(await connection.end(), /sum 11;$/);
    });

    test("requests after one with Connection: close reach no handler", async () => {
      const name = `closed-${tls}`;
      const text = await rawExchange(port(), get("/raw", closing) + second(name), { tls });
      assert.equal(text.match(/HTTP\/1\.1 /g)?.length, 1);
      assert.ok(!smuggled.includes(name));
    });

    test("a failing handler does not affect other pipelined requests", async () => {
      const text = await rawExchange(port(), get("/raw/throw") + get("/raw", closing), { tls });
      assert.deepEqual(text.match(/HTTP\/1\.1 \d+/g), ["HTTP/1.1 500", "HTTP/1.1 200"]);
    });

    test("HTTP/1.0 gets a response, and the connection is closed by default and kept open on request", async () => {
      assert.match(await rawExchange(port(), "GET /raw HTTP/1.0\r\n\r\n", { tls }), /^HTTP\/1\.[01] 200 .*hello$/s);
      using connection = await RawConnection.open(port(), { tls });
      connection.write("GET /raw HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
      await connection.until(/connection: keep-alive.*hello$/is);
      connection.write("GET /raw HTTP/1.0\r\n\r\n");
      assert.equal((await connection.end()).match(/hello/g)?.length, 2);
    });

    for (const [shape, bytes] of Object.entries(smugglingShapes)) {
      const status = shape === "an unknown transfer coding" ? 501 : 400;
      test(`${shape}: ${status}, the connection is closed, and what follows reaches no handler`, async () => {
        const name = `${shape.replaceAll(" ", "-")}-${tls}`;
        const text = await rawExchange(port(), bytes + second(name), { tls });
        assert.ok(text.startsWith(`HTTP/1.1 ${status} `), text);
        assert.equal(text.match(/HTTP\/1\.1 /g)?.length, 1, text);
        assert.match(text, /\r\nconnection: close\r\n/i);
        assert.ok(!smuggled.includes(name));
      });
    }

    test("two Host lines cause a 400", async () => {
      using connection = await RawConnection.open(port(), { tls });
      connection.write("GET /raw HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n");
      await connection.until(/^HTTP\/1\.1 400 /);
    });

    test("a head that is too long causes a 431, and the connection is closed", async () => {
      const text = await rawExchange(port(), get("/raw", `X-Long: ${"x".repeat(40_000)}\r\n`), { tls });
      assert.match(text, /^HTTP\/1\.1 431 /);
    });

    test("a request line that is too long causes a 431 or 414, and the connection is closed", async () => {
      assert.match(await rawExchange(port(), get(`/${"x".repeat(40_000)}`), { tls }), /^HTTP\/1\.1 4(31|14) /);
    });

    for (const line of [
      "GET /raw HTTP/3.7",
      "GET /raw HTTP/2.0",
      "GET /raw HTTP/0.9",
      "GET /raw",
      "GET /raw FTP/1.1",
    ]) {
      test(`a version other than 1.0 and 1.1 is refused, and the connection is closed: ${line}`, async () => {
        assert.match(await rawExchange(port(), `${line}\r\nHost: x\r\n\r\n`, { tls }), /^HTTP\/1\.1 (400|505) /);
      });
    }

    test("many HTTP/1 clients that claim HTTP/2.0 at once do no harm", async () => {
      const clients = await Promise.all(Array.from({ length: 64 }, () => RawConnection.open(port(), { tls })));
      for (const client of clients) client.write("GET /raw HTTP/2.0\r\nHost: x\r\n\r\n");
      for (const client of clients) assert.match(await client.end(), /^HTTP\/1\.1 (400|505) /);
      assert.match(await rawExchange(port(), get("/raw", closing), { tls }), /hello$/);
    });

    test("Expect: 100-continue gets a 100 when the body is read", async () => {
      using connection = await RawConnection.open(port(), { tls });
      connection.write(
        `POST /raw/sum HTTP/1.1\r\nHost: x\r\n${closing}Expect: 100-continue\r\nContent-Length: 3\r\n\r\n`,
      );
      await connection.until(/^HTTP\/1\.1 100 Continue\r\n\r\n/);
      connection.write("abc");
      assert.match(await connection.end(), /HTTP\/1\.1 200 .*sum 3;$/s);
    });

    test("Expect: 100-continue gets no 100 if the body is not read", async () => {
      for (const [path, status, length] of [
        ["/raw/none", 404, 3],
        ["/raw/sum", 413, 60_000],
        ["/unread/", 403, 3],
      ] as const) {
        const head = `POST ${path} HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: ${length}\r\n\r\n`;
        using connection = await RawConnection.open(port(), { tls });
        connection.write(head);
        await connection.until(new RegExp(`^HTTP/1\\.1 ${status} `));
        assert.doesNotMatch(connection.text, /100 Continue/, path);
      }
    });

    test("an unknown expectation causes a 417 or is ignored, and the request gets one response", async () => {
      const text = await rawExchange(port(), get("/raw", `Expect: miracles\r\n${closing}`), { tls });
      assert.match(text, /^HTTP\/1\.1 (417|200) /);
      assert.equal(text.match(/HTTP\/1\.1 /g)?.length, 1);
    });

    test("a client that sends a body that nobody reads can read the early response", async () => {
      using connection = await RawConnection.open(port(), { tls });
      connection.write("POST /raw/sum HTTP/1.1\r\nHost: x\r\nContent-Length: 600000\r\n\r\n");
      for (let n = 0; n < 6; n++) {
        connection.write("x".repeat(100_000));
        await new Promise(setImmediate);
      }
      await connection.until(/^HTTP\/1\.1 413 /);
    });

    test("a response while the body is being read leaves the connection usable at once", async () => {
      using connection = await RawConnection.open(port(), { tls });
      connection.write("POST /unread/first HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc");
      await connection.until(/first 3;$/);
      connection.write(get("/raw"));
      await connection.until(/hello$/);
    });

    test("a body that is cut off reaches no handler and does no harm", async () => {
      const connection = await RawConnection.open(port(), { tls });
      connection.write("POST /raw/sum HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc");
      connection.destroy();
      assert.match(await rawExchange(port(), get("/raw", closing), { tls }), /hello$/);
    });

    test("absolute targets and OPTIONS * are supported", async () => {
      const absolute = await rawExchange(port(), `GET http://x.example/raw HTTP/1.1\r\nHost: y\r\n${closing}\r\n`, {
        tls,
      });
      assert.match(absolute, /hello$/);
      const star = await rawExchange(port(), `OPTIONS * HTTP/1.1\r\nHost: x\r\n${closing}\r\n`, { tls });
      assert.match(star, /^HTTP\/1\.1 (200|204) /);
    });
  });
}

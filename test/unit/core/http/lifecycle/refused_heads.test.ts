/**
 * Requests that are refused because of their head, or by the parser: the status, and the entry in
 * the request log.
 */
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { connect as connectHttp2, constants } from "node:http2";
import { join } from "node:path";
import { describe, test } from "node:test";
import type { HttpErrorEvent, HttpEvent } from "#core/types.ts";
import { eventually } from "#test/support/eventually.ts";
import { frame, openFrames, requestBlock } from "#test/support/frames.ts";
import { serving, withHost } from "#test/support/host.ts";
import { RawConnection, rawExchange } from "#test/support/raw.ts";

const pages: (string | undefined)[] = [];

const host = withHost({
  config: (folder) => ({
    http_log: true,
    http_log_file: join(folder, "requests.log"),
    modules_enabled: ["http", "http_log", "http_proxy"],
    http_proxy: { up: { upstreams: "http://127.0.0.1:9" } },
  }),
  modules: {
    mod_body: serving({ route: { "POST /": ({ request }: HttpEvent) => request.body } }),
    mod_streaming: serving({
      streaming_uploads: true,
      route: {
        "POST /": async ({ request }: HttpEvent) => {
          let text = "";
          for await (const piece of request.body_stream) text += piece;
          return text;
        },
      },
    }),
    mod_pages(module) {
      module.hook("http-error", ({ request }: HttpErrorEvent) => void pages.push(request?.method));
    },
  },
});

interface Line {
  readonly status: number;
  readonly method: string;
  readonly path: string;
  readonly ip: string;
  readonly complete?: boolean;
}

async function logged(since: number): Promise<Line[]> {
  const text = await readFile(join(host().folder, "requests.log"), "utf8");
  return text
    .split("\n")
    .filter((line) => line !== "")
    .slice(since)
    .map((line) => JSON.parse(line) as Line);
}

/** Returns the first matching line that the log gets while this runs. */
async function lineOf(method: string, run: () => Promise<unknown>): Promise<Line> {
  const before = (await logged(0).catch(() => [])).length;
  await run();
  const find = async () => (await logged(before).catch(() => [])).find((line) => line.method === method);
  await eventually("the line is written", async () => (await find()) !== undefined);
  return (await find()) as Line;
}

describe("a transfer coding other than chunked", () => {
  const chunks = "3\r\nabc\r\n0\r\n\r\n";
  for (const coding of ["gzip, chunked", "deflate,chunked", "x-foo, Chunked", "gzip\r\nTransfer-Encoding: chunked"])
    for (const tls of [false, true])
      test(`is 501: ${JSON.stringify(coding)}${tls ? " by TLS" : ""}`, async () => {
        for (const path of ["/body/", "/streaming/", "/up/"]) {
          const head = `POST ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nTransfer-Encoding: ${coding}\r\n\r\n`;
          const reply = await rawExchange(tls ? host().https : host().http, head + chunks, { tls });
          assert.match(reply, /^HTTP\/1\.1 501 /, path);
        }
      });

  test("is 501 also when the parser refuses the body", async () => {
    for (const [coding, body] of [
      ["identity", "abc"],
      ["x-foo", chunks],
      ["gzip, chunked", "no chunk"],
    ]) {
      const head = `POST /body/ HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: ${coding}\r\n\r\n`;
      const reply = await rawExchange(host().http, `${head}${body}`);
      assert.match(reply, /^HTTP\/1\.1 501 .*Connection: close\r\n.*\r\n\r\n./s, coding);
      assert.equal(reply.match(/HTTP\/1/g)?.length, 1, coding);
    }
  });

  test("does not include chunked alone, in upper or lower case", async () => {
    const head = "POST /body/ HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nTransfer-Encoding: Chunked\r\n\r\n";
    assert.match(await rawExchange(host().http, head + chunks), /^HTTP\/1\.1 200 .*abc$/s);
  });
});

describe("CONNECT", () => {
  for (const tls of [false, true])
    test(`is 501 with a page, and is logged${tls ? ", by TLS" : ""}`, async () => {
      const line = await lineOf("CONNECT", async () => {
        const reply = await rawExchange(tls ? host().https : host().http, "CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n", {
          tls,
        });
        assert.match(reply, /^HTTP\/1\.1 501 .*Connection: close\r\n\r\n./s);
      });
      assert.deepEqual([line.method, line.status], ["CONNECT", 501]);
    });

  test("gets its response after that of an earlier request", async () => {
    const first = "POST /body/ HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\nx";
    const reply = await rawExchange(host().http, `${first}CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n`);
    assert.match(reply, /^HTTP\/1\.1 200 .*HTTP\/1\.1 501 /s);
  });

  test("is 501 in HTTP/2, and is logged", async () => {
    const session = connectHttp2(`https://127.0.0.1:${host().https}`, { rejectUnauthorized: false });
    try {
      const line = await lineOf("CONNECT", async () => {
        const stream = session.request({ ":method": "CONNECT", ":authority": "a:1" });
        const status = await new Promise((resolve) => stream.on("response", (head) => resolve(head[":status"])));
        stream.close();
        assert.equal(status, 501);
      });
      assert.equal(line.method, "CONNECT");
    } finally {
      session.destroy();
    }
  });
});

describe("a request that the parser refuses is in the request log", () => {
  const refused = {
    "a malformed line": ["GET /\u0001 x\r\n\r\n", 400],
    "a header without a colon": ["GET / HTTP/1.1\r\nHost: a\r\nbroken\r\n\r\n", 400],
    "a head that is too long": [`GET / HTTP/1.1\r\nHost: a\r\nCookie: ${"x".repeat(40_000)}\r\n\r\n`, 431],
  } as const;
  for (const [title, [text, status]] of Object.entries(refused))
    for (const tls of [false, true])
      test(`${title}${tls ? ", by TLS" : ""}`, async () => {
        pages.length = 0;
        const line = await lineOf("-", async () => {
          assert.match(
            await rawExchange(tls ? host().https : host().http, text, { tls }),
            new RegExp(`^HTTP/1.1 ${status} `),
          );
        });
        const { path, ip, complete } = line;
        assert.deepEqual([path, line.status, ip, complete], ["-", status, "127.0.0.1", undefined]);
        assert.deepEqual(pages, [undefined], "hooks get no request");
      });

  test("a plain request at a TLS port", async () => {
    const line = await lineOf("-", async () => {
      using connection = await RawConnection.open(host().https);
      connection.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
      await connection.end();
    });
    assert.deepEqual([line.status, line.ip, line.complete], [400, "127.0.0.1", false]);
  });
});

describe("a head over http_max_header_size by HTTP/2", () => {
  const large = "x".repeat(30_000);

  test("is 431 also for a client that has not acknowledged the settings, and is logged", async () => {
    // Unindexed literals: a name of one byte, and a value of 200 bytes.
    const field = Buffer.concat([Buffer.from([0, 1, 0x78, 0x7f, 200 - 127]), Buffer.alloc(200, "x")]);
    const fields = Array.from({ length: 70 }, () => field);
    const socket = await openFrames(host().https);
    const line = await lineOf("GET", async () => {
      socket.write(frame("headers", 5, 1, Buffer.concat([requestBlock("GET", "/body/"), ...fields])));
    });
    socket.destroy();
    assert.equal(line.status, 431);
  });

  test("resets the stream when trailers are as large", async () => {
    const session = connectHttp2(`https://127.0.0.1:${host().https}`, { rejectUnauthorized: false });
    try {
      const stream = session.request({ ":method": "POST", ":path": "/streaming/" }, { waitForTrailers: true } as never);
      stream.on("wantTrailers", () => stream.sendTrailers({ "x-a": large }));
      const code = new Promise((resolve) => stream.on("close", () => resolve(stream.rstCode)));
      stream.on("error", () => undefined).resume();
      stream.end("body");
      assert.equal(await code, constants.NGHTTP2_ENHANCE_YOUR_CALM);
    } finally {
      session.destroy();
    }
  });
});

/** Bodies that reuse the memory of their pieces: no piece is overwritten before it is sent. */
import assert from "node:assert/strict";
import { once } from "node:events";
import http2 from "node:http2";
import { connect } from "node:net";
import { after, before, describe, test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { connect as connectTls } from "node:tls";
import type { PooledBody } from "#core/types.ts";
import { startHost, type TestHost } from "#test/support/host.ts";
import { overEach } from "#test/support/transports.ts";

const pieceBytes = 200_000;

/** Pieces that contain their position, and are overwritten as soon as they are released. */
class Lender implements PooledBody {
  readonly count: number;
  made = 0;
  back = 0;
  ended = 0;
  readonly #free: Buffer[] = [];

  constructor(count: number) {
    this.count = count;
  }

  static content(at: number): Buffer {
    return Buffer.alloc(pieceBytes, `piece ${at}, `);
  }

  async *[Symbol.asyncIterator]() {
    try {
      for (; this.made < this.count; this.made += 1) {
        const piece = this.#free.pop() ?? Buffer.allocUnsafeSlow(pieceBytes);
        piece.fill(`piece ${this.made}, `);
        yield piece.subarray();
      }
    } finally {
      this.ended += 1;
    }
  }

  release(piece: Uint8Array): void {
    this.back += 1;
    const buffer = Buffer.from(piece.buffer, piece.byteOffset, piece.length).fill(0xff);
    this.#free.push(buffer);
  }

  /** Resolves when the body has been ended. */
  async over(): Promise<void> {
    while (this.ended === 0) await nextTurn();
  }
}

/** A body that is in memory: one piece, which is overwritten as soon as it is released. */
class PooledWhole implements PooledBody {
  readonly whole: Buffer;
  back = 0;

  constructor(bytes: number) {
    this.whole = PooledWhole.content(bytes);
  }

  static content(bytes: number): Buffer {
    return Buffer.alloc(bytes, "all at once, ");
  }

  async *[Symbol.asyncIterator]() {
    yield this.whole;
  }

  release(piece: Uint8Array): void {
    this.back += 1;
    piece.fill(0xff);
  }
}

const whole = (count: number) => Buffer.concat(Array.from({ length: count }, (_, at) => Lender.content(at)));

let host: TestHost;
const lenders = new Map<string, Lender>();
const wholes = new Map<string, PooledWhole>();
before(async () => {
  host = await startHost({
    modules: {
      mod_pooled(module) {
        module.depends("http");
        const leased = (count: number) => (event: { request: { url: { query: string | undefined } } }) => {
          const lender = new Lender(count);
          lenders.set(event.request.url.query ?? "", lender);
          return lender;
        };
        const pooledWhole = (event: { request: { url: { query: string | undefined } } }) => {
          const [bytes, trailers] = (event.request.url.query ?? "").split("-");
          const body = new PooledWhole(Number(bytes));
          wholes.set(event.request.url.query ?? "", body);
          return {
            headers: { content_type: "text/plain" },
            body,
            ...(trailers === "t" && { trailers: { x_end: "1" } }),
          };
        };
        const route = {
          "GET /some": leased(12),
          "GET /many": leased(2000),
          "HEAD /some": leased(12),
          "GET /whole": pooledWhole,
        };
        module.provides("http", { route });
      },
    },
  });
});
after(() => host?.stop());

const lenderOf = (query: string): Lender => lenders.get(query) ?? assert.fail(`nobody lent for ${query}`);

overEach(
  () => host,
  "many at once get every piece as it was given, and every piece comes back",
  async (client) => {
    const expected = whole(12);
    const names = Array.from({ length: 8 }, (_, at) => encodeURIComponent(`${client.name}-${at}`));
    const replies = await Promise.all(names.map((name) => client.request(`/pooled/some?${name}`)));
    for (const { bytes } of replies) assert.ok(bytes.equals(expected));
    for (const lender of names.map(lenderOf)) {
      while (lender.back < 12) await nextTurn();
      assert.deepEqual([lender.made, lender.back, lender.ended], [12, 12, 1]);
    }
  },
);

overEach(
  () => host,
  "without a body nothing is made",
  async (client) => {
    const name = encodeURIComponent(`${client.name}-head`);
    const reply = await client.request({ method: "HEAD", path: `/pooled/some?${name}` });
    assert.equal(reply.bytes.length, 0);
    assert.equal(lenderOf(name).made, 0);
  },
);

for (const size of [4000, 200_000, 8_000_000]) {
  overEach(
    () => host,
    `${size} bytes that are at hand come as they were given, with their length, and go back once`,
    async (client) => {
      for (const kind of ["", "t"]) {
        const query = `${size}-${kind}-${encodeURIComponent(client.name)}`;
        const reply = await client.request(`/pooled/whole?${query}`);
        assert.ok(reply.bytes.equals(PooledWhole.content(size)));
        const body = wholes.get(query) ?? assert.fail("nobody lent");
        while (body.back === 0) await nextTurn();
        await nextTurn();
        assert.equal(body.back, 1);
      }
    },
  );
}

describe("slow clients", () => {
  for (const tls of [false, true]) {
    test(`a client of HTTP/1 ${tls ? "over TLS " : ""}that reads late gets the right bytes`, async () => {
      const name = `slow-${tls}`;
      const port = tls ? host.https : host.http;
      const socket = tls
        ? connectTls({ port, host: "127.0.0.1", rejectUnauthorized: false, ALPNProtocols: ["http/1.1"] })
        : connect({ port, host: "127.0.0.1" });
      await once(socket, tls ? "secureConnect" : "connect");
      socket.write(`GET /pooled/many?${name} HTTP/1.0\r\nHost: a\r\n\r\n`);
      while (lenders.get(name) === undefined) await nextTurn();
      const lender = lenderOf(name);
      // Pieces are created only until the connection is full.
      for (let made = -1, same = 0; same < 200; await nextTurn()) {
        same = made === lender.made ? same + 1 : 0;
        made = lender.made;
      }
      assert.ok(lender.made > 0 && lender.made < 200, `${lender.made} of 2000 pieces for one who reads nothing`);
      assert.ok(lender.made - lender.back <= 3, `${lender.made} made, ${lender.back} back`);
      const seen = 60 * pieceBytes;
      const pieces: Buffer[] = [];
      let bytes = 0;
      for await (const piece of socket as AsyncIterable<Buffer>) {
        pieces.push(piece);
        bytes += piece.length;
        if (bytes > seen + 1000) break;
      }
      const received = Buffer.concat(pieces);
      const body = received.subarray(received.indexOf("\r\n\r\n") + 4).subarray(0, seen);
      assert.ok(body.equals(whole(60)));
      socket.destroy();
      await lender.over();
      assert.ok(lender.made < 2000);
    });
  }

  test("an HTTP/2 stream that is read late gets the right bytes, while others are read at once", async () => {
    const session = http2.connect(`https://127.0.0.1:${host.https}`, { rejectUnauthorized: false });
    try {
      const late = session.request({ ":path": "/pooled/some?h2-late" });
      await once(late, "response");
      const others = Array.from({ length: 4 }, (_, at) => session.request({ ":path": `/pooled/some?h2-${at}` }));
      const expected = whole(12);
      for (const stream of [...others, late]) {
        assert.ok(Buffer.concat(await Array.fromAsync(stream as AsyncIterable<Buffer>)).equals(expected));
      }
      const left = session.request({ ":path": "/pooled/many?h2-left" });
      await once(left, "data");
      left.close(http2.constants.NGHTTP2_CANCEL);
      await lenderOf("h2-left").over();
      // The session and its other streams continue.
      const last = session.request({ ":path": "/pooled/some?h2-last" });
      assert.ok(Buffer.concat(await Array.fromAsync(last as AsyncIterable<Buffer>)).equals(expected));
    } finally {
      session.destroy();
    }
  });

  test("a client that leaves in the middle ends the body, and its pieces are released or forgotten", async () => {
    const socket = connect({ port: host.http, host: "127.0.0.1" });
    socket.write("GET /pooled/many?left HTTP/1.1\r\nHost: a\r\n\r\n");
    await once(socket, "readable");
    socket.destroy();
    const lender = lenderOf("left");
    await lender.over();
    assert.ok(lender.made < 2000 && lender.back <= lender.made + 1);
    assert.equal(lender.ended, 1);
  });
});

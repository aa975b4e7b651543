/**
 * Bodies that are read in large pieces: nothing is lost, and the connection is afterwards as it was
 * before.
 */
import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { EventEmitter } from "node:events";
import { createServer, IncomingMessage, type Server } from "node:http";
import { Socket } from "node:net";
import { describe, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { type NodeParts, readBuffersInUse, whyBodiesAreInSmallPieces } from "#core/http/patches/node/large_body.ts";
import type { HttpEvent } from "#core/types.ts";
import { eventually } from "#test/support/eventually.ts";
import { RawConnection } from "#test/support/raw.ts";
import { TestService } from "#test/support/service.ts";

const MEBIBYTE = 1024 * 1024;
const hashOf = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");

/** Returns the length, the hash and the longest piece of each part of a body. */
async function report({ request }: HttpEvent, wait: () => Promise<unknown>): Promise<string> {
  const reported: string[] = [];
  for await (const part of request.parts()) {
    const hash = createHash("sha256");
    let length = 0;
    let longest = 0;
    for await (const piece of part.passing) {
      await wait();
      hash.update(piece);
      length += piece.length;
      longest = Math.max(longest, piece.length);
    }
    reported.push(`${length} ${hash.digest("hex")} ${longest}`);
  }
  return `<${reported.join()}>`;
}

const app = {
  streaming_uploads: true,
  route: {
    "POST /": (event: HttpEvent) => report(event, async () => {}),
    "POST /slow": (event: HttpEvent) => report(event, () => delay(1)),
    "POST /first": async ({ request }: HttpEvent) => {
      for await (const part of request.parts()) for await (const piece of part.passing) return `<first ${piece[0]}>`;
      return "<none>";
    },
    "POST /half": async ({ request }: HttpEvent) => {
      let length = 0;
      for await (const part of request.parts())
        for await (const piece of part.passing) if ((length += piece.length) > 1.5 * MEBIBYTE) return "<half>";
      return "<none>";
    },
    "POST /kept": async ({ request }: HttpEvent) => {
      const retained: Buffer[] = [];
      for await (const part of request.parts()) for await (const piece of part.body) retained.push(piece);
      return `<${hashOf(Buffer.concat(retained))}>`;
    },
    "POST /unread": () => "<unread>",
    "GET /": () => "<got>",
  },
};

const opening = '--b\r\nContent-Disposition: form-data; name="f"; filename="f"\r\n\r\n';
const ending = "\r\n--b--\r\n";
const bodyOf = (content: Uint8Array) => Buffer.concat([Buffer.from(opening), content, Buffer.from(ending)]);

const headOf = (path: string, framing: string) =>
  `POST /app${path} HTTP/1.1\r\nHost: a\r\nContent-Type: multipart/form-data; boundary=b\r\n${framing}\r\n\r\n`;

function* cut(bytes: Buffer, size: () => number): Generator<Buffer> {
  for (let at = 0; at < bytes.length; ) {
    const end = at + size();
    yield bytes.subarray(at, end);
    at = end;
  }
}

function stated(path: string, content: Uint8Array): Buffer {
  const body = bodyOf(content);
  return Buffer.concat([Buffer.from(headOf(path, `Content-Length: ${body.length}`)), body]);
}

function chunked(path: string, content: Uint8Array, size: () => number, last = "0\r\n\r\n"): Buffer {
  const pieces: (string | Buffer)[] = [headOf(path, "Transfer-Encoding: chunked")];
  for (const piece of cut(bodyOf(content), size)) pieces.push(`${piece.length.toString(16)}\r\n`, piece, "\r\n");
  return Buffer.concat([...pieces, last].map((piece) => Buffer.from(piece)));
}

const get = "GET /app/ HTTP/1.1\r\nHost: a\r\n\r\n";
const isEven = (at: number) => at % 2 === 0;
const times = (text: string, found: RegExp) => text.match(new RegExp(found, "g"))?.length ?? 0;

test("this version of Node.js supports large reads", () => {
  assert.equal(whyBodiesAreInSmallPieces(), undefined);
});

describe("bodies are left to Node", () => {
  const without = (parts: Partial<NodeParts>) => whyBodiesAreInSmallPieces({ Socket, createServer, ...parts }) ?? "";
  /** A server whose parser passes the contents of a read with `passed`. */
  const parsing = (passed: (request: IncomingMessage, contents: Buffer) => void) => () => {
    const server = new EventEmitter();
    server.on("connection", (socket: Socket) => {
      const request = new IncomingMessage(socket);
      socket.on("data", (read: Buffer) => {
        const at = read.indexOf("ab");
        if (at >= 0) server.emit("request", request);
        passed(request, at >= 0 ? read.subarray(at, at + 2) : read.subarray(0, 2));
        request.complete = at < 0;
      });
    });
    return server as unknown as Server;
  };

  test("if a parser passes copies, they are not", () => {
    assert.equal(without({ createServer: parsing((request, contents) => request.push(Buffer.from(contents))) }), "");
  });

  test("when a socket keeps its option `onread` elsewhere", () => {
    // biome-ignore lint/complexity/useArrowFunction: it is called with `new`
    const Other = function () {
      return new Socket();
    };
    assert.match(without({ Socket: Other as unknown as typeof Socket }), /uploads take more CPU time/);
  });

  test("when the parser passes contents that share the memory of the read", () => {
    const createServer = parsing((request, contents) => request.push(contents));
    assert.match(without({ createServer }), /uploads take more CPU time/);
  });

  test("when the parser passes contents later", () => {
    const createServer = parsing((request, contents) => setImmediate(() => request.push(Buffer.from(contents))));
    assert.match(without({ createServer }), /uploads take more CPU time/);
  });
});

describe("a large body", () => {
  const content = randomBytes(5 * MEBIBYTE + 7);
  let seed = 7;
  const any = (most: number) => () => {
    seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31;
    return 1 + (seed % most);
  };
  /** Chunks of 64 KiB. From a position on, their size lines contain more than a size. */
  const extended = (from: number) => {
    const bytes = chunked("/", content, () => 64 * 1024);
    const later = bytes.subarray(from).toString("latin1").replaceAll("\r\n10000\r\n", "\r\n10000;a=b\r\n");
    return Buffer.concat([bytes.subarray(0, from), Buffer.from(later, "latin1")]);
  };
  const ways = {
    "of a stated length": stated("/", content),
    "in one chunk": chunked("/", content, () => Number.POSITIVE_INFINITY),
    "in chunks of 64 KiB": chunked("/", content, () => 64 * 1024),
    "in chunks of 32,000 bytes": chunked("/", content, () => 32_000),
    "in chunks of any size": chunked("/", content, any(100_000)),
    "in very small chunks": chunked("/", content.subarray(0, 2 * MEBIBYTE), any(200)),
    "with trailers": chunked("/", content, () => 64 * 1024, "0\r\nX-A: 1\r\n\r\n"),
    "with extensions of chunks": extended(0),
    "whose extensions begin late": extended(4 * MEBIBYTE),
  };
  for (const [name, bytes] of Object.entries(ways)) {
    test(`${name} arrives whole, and other requests can follow on the connection, pipelined or not`, async () => {
      await using service = await TestService.start(app);
      using connection = await RawConnection.open(service.port, { timeout: 30_000 });
      const sent = name === "in very small chunks" ? content.subarray(0, 2 * MEBIBYTE) : content;
      connection.write(bytes);
      await connection.until(/<\d/);
      connection.write(Buffer.concat([bytes, bytes, Buffer.from(get)]));
      await connection.until(/<got>/);
      connection.write(get);
      await connection.until(/<got>.*<got>/s);
      assert.equal(times(connection.text, new RegExp(`<${sent.length} ${hashOf(sent)} `)), 3);
      assert.equal(times(connection.text, /HTTP\/1\.1 200/), 5);
    });
  }

  test("is read correctly when its contents look like chunks after a read that ends in a size", async () => {
    const filling = Buffer.alloc(1_100_000, "A");
    const first = Buffer.alloc(0x400, "B");
    const second = Buffer.alloc(0x8010, "C");
    // The contents imitate chunks. A reader that took the rest of the size line of `first` for
    // contents would look for each boundary at a position where the contents have a false one.
    first.write("\r\nf", first.length - 3);
    second.write("\r\n0100\r\n", 9);
    const size = (bytes: Uint8Array) => `${bytes.length.toString(16)}\r\n`;
    const chunk = (bytes: Buffer) => Buffer.concat([Buffer.from(size(bytes)), bytes, Buffer.from("\r\n")]);
    await using service = await TestService.start(app);
    using connection = await RawConnection.open(service.port, { timeout: 30_000 });
    const sent = Buffer.concat([filling, first, second]);
    const packets = [
      Buffer.from(headOf("/", "Transfer-Encoding: chunked")),
      Buffer.concat([chunk(Buffer.concat([Buffer.from(opening), filling])), Buffer.from("40")]),
      Buffer.concat([Buffer.from("0\r\n"), first, Buffer.from(`\r\n${size(second)}`), second.subarray(0, 15)]),
      Buffer.concat([second.subarray(15), Buffer.from("\r\n"), chunk(Buffer.from(ending)), Buffer.from("0\r\n\r\n")]),
    ];
    for (const packet of packets) {
      connection.write(packet);
      // The server must read each packet by itself, because the fault only occurs when a read ends
      // in a size.
      await delay(100);
    }
    connection.write(get);
    await connection.until(/<got>/);
    assert.equal(times(connection.text, new RegExp(`<${sent.length} ${hashOf(sent)} `)), 1);
  });

  test("arrives in pieces larger than Node's own", async () => {
    await using service = await TestService.start(app);
    for (const bytes of [ways["of a stated length"], chunked("/", content, () => 200_000)]) {
      using connection = await RawConnection.open(service.port, { timeout: 30_000 });
      connection.write(bytes);
      await connection.until(/<\d+ \w+ (\d+)>/);
      assert.ok(Number(/(\d+)>/.exec(connection.text)?.[1]) > 64 * 1024, connection.text);
    }
  });

  test("arrives whole for many slow readers at once", async () => {
    await using service = await TestService.start(app);
    const all = Array.from({ length: 80 }, async (_, at) => {
      const own = randomBytes(1.5 * MEBIBYTE + at);
      using connection = await RawConnection.open(service.port, { timeout: 60_000 });
      connection.write(at % 2 === 0 ? stated("/slow", own) : chunked("/slow", own, () => 40_000));
      await connection.until(/>/);
      assert.ok(connection.text.includes(`<${own.length} ${hashOf(own)} `), connection.text);
    });
    await Promise.all(all);
  });

  test("can be kept by a reader of `body`", async () => {
    await using service = await TestService.start(app);
    using connection = await RawConnection.open(service.port, { timeout: 30_000 });
    connection.write(stated("/kept", content));
    await connection.until(/<\w+>/);
    assert.ok(connection.text.includes(`<${hashOf(content)}>`));
  });

  for (const path of ["/first", "/unread"]) {
    test(`is dropped after a response that did not wait for it: ${path}`, async () => {
      await using service = await TestService.start(app);
      for (const bytes of [stated(path, content), chunked(path, content, () => 50_000)]) {
        using connection = await RawConnection.open(service.port, { timeout: 30_000 });
        connection.write(bytes);
        await connection.until(/<(first|unread)/);
        assert.match(connection.text, /^HTTP\/1\.1 200/);
      }
      using other = await RawConnection.open(service.port);
      other.write(get);
      await other.until(/<got>/);
    });
  }

  test("releases its buffer when its reader leaves early, and other requests can follow on the connection", async () => {
    await using service = await TestService.start(app);
    const open = Array.from({ length: 8 }, () => RawConnection.open(service.port, { timeout: 60_000 }));
    const connections = await Promise.all(open);
    const all = connections.map(async (connection, at) => {
      for (let round = 1; round <= 2; round += 1) {
        const part = randomBytes(2.2 * MEBIBYTE + at);
        const whole = randomBytes(2.5 * MEBIBYTE + at);
        const isStated = isEven(at + round);
        connection.write(isStated ? stated("/half", part) : chunked("/half", part, () => 50_000));
        await connection.until(new RegExp(`(<half>.*){${round}}`, "s"));
        connection.write(isStated ? stated("/slow", whole) : chunked("/slow", whole, () => 70_000));
        await connection.until(new RegExp(`<${whole.length} ${hashOf(whole)} `));
        connection.write(get);
        await connection.until(new RegExp(`(<got>.*){${round}}`, "s"));
      }
      connection.write(isEven(at) ? stated("/half", content.subarray(0, 2.2 * MEBIBYTE)) : get);
      await connection.until(isEven(at) ? /(<half>.*){3}/s : /(<got>.*){3}/s);
    });
    await Promise.all(all);
    await eventually("no buffer is in use", () => readBuffersInUse() === 0);
    assert.equal(connections.filter(({ closed }) => closed).length, 0);
    for (const connection of connections) connection.destroy();
  });

  test("leaves the bytes that follow a CONNECT behind it as they are while other bodies arrive", async () => {
    const isRead = Promise.withResolvers<void>();
    const route = {
      ...app.route,
      "POST /gated": async (event: HttpEvent) => {
        const text = await report(event, async () => {});
        await isRead.promise;
        return text;
      },
    };
    await using service = await TestService.start({ ...app, route, tunnels: true });
    using connection = await RawConnection.open(service.port, { timeout: 30_000 });
    const bytes = stated("/gated", content);
    // The read after a small one goes into the memory that all connections share.
    for (const piece of [bytes.subarray(0, -16), bytes.subarray(-16, -8)]) {
      connection.write(piece);
      await delay(200);
    }
    connection.write(
      Buffer.concat([bytes.subarray(-8), Buffer.from(`CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\n\r\n${get}`)]),
    );
    await delay(200);
    using other = await RawConnection.open(service.port, { timeout: 30_000 });
    other.write(ways["of a stated length"]);
    await other.until(/<\d/);
    isRead.resolve();
    await connection.until(/<got>/);
  });

  test("fails for its reader when it is cut off or malformed, and the server continues", async () => {
    await using service = await TestService.start(app);
    const whole = ways["of a stated length"];
    using left = await RawConnection.open(service.port, { timeout: 30_000 });
    left.write(whole.subarray(0, 3 * MEBIBYTE));
    left.socket.end();
    await left.until(/HTTP|^$/).catch(() => undefined);
    assert.doesNotMatch(left.text, /200/);
    using broken = await RawConnection.open(service.port, { timeout: 30_000 });
    const good = ways["in chunks of 64 KiB"];
    broken.write(
      Buffer.concat([
        good.subarray(0, headOf("/", "Transfer-Encoding: chunked").length),
        chunks(40),
        Buffer.from("zz\r\n"),
      ]),
    );
    await broken.until(/HTTP\/1\.1 400/);
    using other = await RawConnection.open(service.port, { timeout: 30_000 });
    other.write(whole);
    await other.until(/<\d/);
  });
});

/** Chunks of 64 KiB that contain the beginning of a part. */
function chunks(count: number): Buffer {
  const all = chunked("/", Buffer.alloc(count * 64 * 1024), () => 64 * 1024);
  const head = headOf("/", "Transfer-Encoding: chunked").length;
  return all.subarray(head, head + count * (64 * 1024 + 9));
}

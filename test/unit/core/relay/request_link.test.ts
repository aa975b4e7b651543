/** Requests over one connection to a worker, and what a hostile worker may send. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { describe, type TestContext, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { frameKinds, MAX_HEAD_BYTES, WINDOW_BYTES } from "#core/relay/request_frames.ts";
import { type LinkedRequest, type LinkedResponse, RequestLink } from "#core/relay/request_link.ts";
import { ServedRequests } from "#core/relay/served_requests.ts";
import { eventually } from "#test/support/eventually.ts";

const token = "a token";
const peer = JSON.stringify({ remoteAddress: "192.0.2.1", remotePort: 7, encrypted: false });

type Handler = (request: IncomingMessage, response: ServerResponse) => unknown;

interface Linked {
  readonly link: RequestLink;
  readonly reasons: readonly string[];
}

async function listen(t: TestContext, connected: (socket: Socket) => void): Promise<Linked> {
  const folder = mkdtempSync(join(tmpdir(), "modhost-test-link-"));
  const path = join(folder, "http");
  const sockets: Socket[] = [];
  const server = createServer((socket) => {
    sockets.push(socket.on("error", () => undefined));
    connected(socket);
  }).listen(path);
  await once(server, "listening");
  const reasons: string[] = [];
  const link = new RequestLink({ path, token }, (reason) => reasons.push(reason));
  t.after(() => {
    link.close();
    for (const socket of sockets) socket.destroy();
    server.close();
    rmSync(folder, { recursive: true });
  });
  return { link, reasons };
}

/** A worker whose requests a handler of Node.js serves. */
function serve(t: TestContext, handler: Handler, expected = token): Promise<Linked> {
  return listen(t, (socket) => {
    socket.once("data", (first: Buffer) => {
      new ServedRequests(socket, first, expected, (request, response) => void handler(request, response));
    });
  });
}

const get = (path = "/", fields: readonly string[] = []): LinkedRequest => ({
  head: ["GET", path, peer, "id", "", "Host", "localhost", ...fields],
  body: undefined,
});

const post = (body: LinkedRequest["body"], more: Partial<LinkedRequest> = {}): LinkedRequest => ({
  head: ["POST", "/", peer, "id", "", "Host", "localhost", "Transfer-Encoding", "chunked"],
  body,
  ...more,
});

/** Reads a body as the host does: the memory of each piece is used again after it is released. */
async function bytesOf({ body }: LinkedResponse): Promise<Buffer> {
  if (body instanceof Uint8Array) return body;
  const copies: Buffer[] = [];
  for await (const piece of body) {
    copies.push(Buffer.from(piece));
    body.release(piece);
  }
  return Buffer.concat(copies);
}

const textOf = async (response: LinkedResponse): Promise<string> => (await bytesOf(response)).toString("latin1");

async function* pieces(
  count: number,
  bytes: number,
  given: { count: number } = { count: 0 },
  letter = "x",
): AsyncGenerator<Buffer> {
  for (; given.count < count; given.count += 1) yield Buffer.alloc(bytes, letter);
}

describe("a request over the link", () => {
  test("is for the handler what Node's own server gives it", async (t) => {
    const seen: unknown[] = [];
    const { link } = await serve(t, (request, response) => {
      const { method, url, httpVersion, headers, rawHeaders, headersDistinct, complete } = request;
      seen.push({ method, url, httpVersion, headers, rawHeaders, distinct: { ...headersDistinct }, complete });
      seen.push(request.socket.remoteAddress, request.socket.remotePort, response.headersSent);
      response.on("finish", () => seen.push("finish", response.writableFinished));
      response.on("close", () => seen.push("close", response.closed, response.destroyed));
      request.on("end", () => seen.push("end"));
      response.setHeader("X-One", "1");
      response.writeHead(201, "Made", { "Content-Type": "text/plain", "Content-Length": "5" });
      seen.push(response.headersSent);
      response.end("hello");
      seen.push(response.writableEnded);
    });
    const cookies = ["Cookie", "a=1", "Cookie", "b=2", "X-A", "1", "X-A", "2", "User-Agent", "u", "User-Agent", "v"];
    const response = await link.send(get("/a?b", cookies)).response;
    assert.equal(response.statusCode, 201);
    assert.equal(response.statusMessage, "Made");
    const fields = response.rawHeaders.filter((_, at) => !/^(?:connection|keep-alive)$/i.test(String(at)));
    assert.deepEqual(fields.slice(0, 6), ["X-One", "1", "Content-Type", "text/plain", "Content-Length", "5"]);
    assert.equal(await textOf(response), "hello");
    await eventually("the request has ended", () => seen.includes("end"));
    assert.deepEqual(seen, [
      {
        method: "GET",
        url: "/a?b",
        httpVersion: "1.1",
        headers: { host: "localhost", cookie: "a=1; b=2", "x-a": "1, 2", "user-agent": "u" },
        rawHeaders: ["Host", "localhost", ...cookies],
        distinct: { host: ["localhost"], cookie: ["a=1", "b=2"], "x-a": ["1", "2"], "user-agent": ["u", "v"] },
        complete: true,
      },
      ...["192.0.2.1", 7, false, true, true],
      ...["finish", true, "close", true, true, "end"],
    ]);
  });

  test("carries bodies of any size both ways, with trailers and interim responses", async (t) => {
    const { link } = await serve(t, async (request, response) => {
      response.writeEarlyHints({ link: "</a.css>; rel=preload" });
      response.setHeader("Trailer", "X-Sum");
      let sum = 0;
      request.on("data", ({ length }: Buffer) => {
        sum += length;
      });
      request.on("end", () => response.addTrailers({ "X-Sum": `${sum} ${request.trailers["x-sent"]}` }));
      await pipeline(request, response);
    });
    const hints: unknown[] = [];
    const more = {
      trailers: () => ["X-Sent", "yes"],
      informed: (status: number, fields: readonly string[]) => hints.push(status, ...fields),
    };
    for (const [count, bytes] of [
      [1, 3],
      [40, 100_000],
      [3, 1_000_000],
    ] as const) {
      const received = await link.send(post(pieces(count, bytes), more)).response;
      const sent = await bytesOf(received);
      assert.ok(!(received.body instanceof Uint8Array));
      assert.equal(sent.length, count * bytes);
      assert.ok(sent.every((byte) => byte === 120));
      assert.deepEqual(received.body.rawTrailers, ["X-Sum", `${count * bytes} yes`]);
    }
    assert.deepEqual(hints.slice(0, 3), [103, "Link", "</a.css>; rel=preload"]);
  });

  test("is sent no faster than the handler reads, and answered no faster than the host reads", async (t) => {
    const written = { count: 0 };
    const { link } = await serve(t, async (request, response) => {
      if (request.method === "POST") return;
      await pipeline(pieces(1000, 10_000, written), response).catch(() => undefined);
    });
    const given = { count: 0 };
    const upload = link.send(post(pieces(1000, 10_000, given)));
    upload.response.catch(() => undefined);
    const download = link.send(get());
    await download.response;
    await sleep(100);
    for (const { count } of [given, written]) assert.ok(count > 10 && count * 10_000 < 4 * WINDOW_BYTES, `${count}`);
    upload.close();
    download.close();
  });

  test("is aborted at the handler when the client leaves, and at the host when the handler cuts it", async (t) => {
    const events: string[] = [];
    const { link } = await serve(t, (request, response) => {
      events.push("begun");
      if (request.url === "/cut") {
        response.write("a part");
        setTimeout(() => request.socket.destroy(), 10);
        return;
      }
      request.on("aborted", () => events.push("aborted")).on("error", ({ message }) => events.push(message));
      response.on("close", () => events.push(`closed ${response.writableFinished}`));
      request.resume();
    });
    const call = link.send(
      post(
        (async function* () {
          await sleep(60_000, undefined, { ref: false });
          yield "" as never;
        })(),
      ),
    );
    call.response.catch(() => undefined);
    await eventually("the handler has begun", () => events.length === 1);
    call.close();
    await eventually("request and response have ended", () => events.length >= 4);
    assert.deepEqual(events.sort(), ["aborted", "aborted", "begun", "closed false"]);
    await assert.rejects(textOf(await link.send(get("/cut")).response));
  });

  test("leaves no store of its handler to another request of the same turn", async (t) => {
    const { AsyncLocalStorage } = await import("node:async_hooks");
    const store = new AsyncLocalStorage<string>();
    const { link } = await serve(t, ({ url = "" }, response) => {
      const before = store.getStore();
      store.enterWith(url);
      response.end(String(before));
    });
    const responses = await Promise.all(["/a", "/b", "/c"].map((path) => link.send(get(path)).response));
    assert.deepEqual(await Promise.all(responses.map(textOf)), ["undefined", "undefined", "undefined"]);
  });

  test("does not fail when the handler of another one throws in a listener", async (t) => {
    const caught: unknown[] = [];
    const { link } = await serve(t, (request, response) => {
      request.on("data", () => {
        if (request.method === "POST" && request.headers["x-bad"] !== undefined) throw new Error("of a listener");
      });
      request.on("end", () => response.end("fine"));
    });
    process.setUncaughtExceptionCaptureCallback(({ message }) => caught.push(message));
    try {
      const bad = post(pieces(2, 10));
      link.send({ ...bad, head: [...bad.head, "X-Bad", "1"] }).response.catch(() => undefined);
      assert.equal(await textOf(await link.send(post(pieces(2, 10))).response), "fine");
      await eventually("the error is reported", () => caught.length > 0);
    } finally {
      process.setUncaughtExceptionCaptureCallback(null);
    }
    assert.ok(caught.length > 0 && caught.every((message) => message === "of a listener"));
  });

  test("is answered before the work that its handler puts off with setImmediate", async (t) => {
    const written: number[] = [];
    const { link } = await listen(t, (socket) => {
      socket.once("data", (first: Buffer) => {
        new ServedRequests(socket, first, token, async (_, response) => {
          setImmediate(() => written.push(socket.bytesWritten));
          await undefined;
          response.end("done");
        });
      });
    });
    for (const count of [1, 2]) {
      const before = written.at(-1) ?? 0;
      await link.send(get()).response;
      await eventually("the work is done", () => written.length === count);
      assert.ok((written.at(-1) ?? 0) > before, "the response is not written yet");
    }
  });

  test("has the connection of the earlier requests of its client, and of no other client", async (t) => {
    const { link } = await serve(t, ({ socket }, response) => {
      const known = socket as Socket & { count?: number };
      known.count = (known.count ?? 0) + 1;
      response.end(`${socket.remotePort} ${known.count}`);
    });
    const of = (port: number): LinkedRequest => {
      const { head, ...rest } = get();
      return { ...rest, head: head.with(2, JSON.stringify({ remotePort: port })) };
    };
    const texts: string[] = [];
    for (const port of [1, 2, 1, 2, 1]) texts.push(await textOf(await link.send(of(port)).response));
    assert.deepEqual(texts, ["1 1", "2 1", "1 2", "2 2", "1 3"]);
    const together = await Promise.all([of(3), of(3)].map((request) => link.send(request).response.then(textOf)));
    assert.deepEqual(together, ["3 1", "3 1"]);
  });

  test("has a new connection after one that was aborted, has a timeout or has ended", async (t) => {
    const sockets = new Set<Socket>();
    const { link } = await serve(t, ({ url, socket }, response) => {
      sockets.add(socket);
      if (url === "/destroy") socket.destroy();
      if (url === "/timeout") socket.setTimeout(60_000);
      if (url === "/end") socket.on("end", () => response.end());
      else response.end();
    });
    for (const path of ["/destroy", "/timeout", "/end", "/"]) {
      const call = link.send(get(path));
      if (path === "/end") call.endConnection();
      await call.response.catch(() => undefined);
      for (const socket of sockets) socket.setTimeout(0);
    }
    assert.equal(sockets.size, 4);
  });

  test("does not get the next piece of its body before the memory of the last one is free", async (t) => {
    const { link } = await serve(t, async (request, response) => {
      let isRight = true;
      for await (const piece of request) isRight &&= (piece as Buffer).every((byte) => byte === 120);
      response.end(String(isRight));
    });
    async function* passing(): AsyncGenerator<Buffer> {
      for (let count = 0; count < 50; count += 1) {
        const piece = Buffer.alloc(100_000, "x");
        yield piece;
        piece.fill("y");
      }
    }
    assert.equal(await textOf(await link.send(post(passing())).response), "true");
  });

  test("is answered in pieces that do not change before they are released", async (t) => {
    const { link } = await serve(t, async ({ url = "" }, response) => {
      await pipeline(pieces(40, 50_000, { count: 0 }, url.slice(1)), response);
    });
    const bodies = await Promise.all(
      ["a", "b", "c"].map(async (letter) => {
        const { body } = await link.send(get(`/${letter}`)).response;
        assert.ok(!(body instanceof Uint8Array));
        const retained: Buffer[] = [];
        for await (const piece of body) retained.push(piece);
        return { letter, retained };
      }),
    );
    for (const { letter, retained } of bodies)
      assert.equal(Buffer.concat(retained).toString(), letter.repeat(2_000_000));
  });

  test("is refused without the token of the worker", async (t) => {
    const { link, reasons } = await serve(t, (_, response) => response.end(), "another token");
    await assert.rejects(link.send(get()).response, { reason: "lost" });
    assert.deepEqual(reasons, []);
  });
});

function frameOf(kind: number, id: number, isLast: boolean, head = "", body = "", headBytes = head.length): Buffer {
  const prefix = Buffer.alloc(16);
  prefix.writeUInt32BE(head.length + body.length);
  prefix[4] = kind;
  prefix[5] = isLast ? 1 : 0;
  prefix.writeUInt32BE(id, 8);
  prefix.writeUInt32BE(headBytes, 12);
  return Buffer.concat([prefix, Buffer.from(head + body, "latin1")]);
}

const { hello, request, response, interim, data, end, credit, half, abort, closed } = frameKinds;
const ok = "HTTP/1.1 200 OK";

/** Frames that no correct worker sends in response to the request 0, which has no body. */
const hostile: Readonly<Record<string, readonly Buffer[]>> = {
  "a kind of frame that does not exist": [frameOf(200, 0, true)],
  "a head that is longer than its frame": [frameOf(response, 0, true, ok, "", 1000)],
  "a frame that is too large": [frameOf(response, 0, true, ok, "x".repeat(3 * MAX_HEAD_BYTES))],
  "a frame of a request that does not exist": [frameOf(response, 7, true, ok)],
  "a frame after the end": [frameOf(response, 0, true, ok), frameOf(data, 0, false, "", "x")],
  "a second head": [frameOf(response, 0, false, ok), frameOf(response, 0, true, ok)],
  "a body without a head": [frameOf(data, 0, false, "", "x")],
  "an empty piece of a body": [frameOf(response, 0, false, ok), frameOf(data, 0, false)],
  "an end without a head": [frameOf(end, 0, true)],
  "trailers with a line break": [frameOf(response, 0, false, ok), frameOf(end, 0, true, "a\nb\rc: d")],
  "trailers without a value": [frameOf(response, 0, false, ok), frameOf(end, 0, true, "a")],
  "more of a body than the host has asked for": [
    frameOf(response, 0, false, ok),
    frameOf(data, 0, false, "", "x".repeat(2 * WINDOW_BYTES)),
    frameOf(data, 0, false, "", "x"),
  ],
  "credit for a body that was not sent": [frameOf(credit, 0, true, "1")],
  "credit that is not a number": [frameOf(credit, 0, true, "1e3x")],
  "the end of a request that has not ended": [frameOf(closed, 0, true)],
  "too many interim responses": Array.from({ length: 101 }, () =>
    frameOf(interim, 0, true, "HTTP/1.1 103 Early Hints"),
  ),
  ...Object.fromEntries(
    Object.entries({ hello, request, half }).map(([name, kind]) => [
      `a frame of the host: ${name}`,
      [frameOf(kind, 0, true)],
    ]),
  ),
};

/** Heads of responses that cannot be sent to a client. */
const heads = [
  ...[
    "",
    "garbage",
    "HTTP/1.1",
    "HTTP/1.1 20 OK",
    "HTTP/1.1 2000 OK",
    "HTTP/1.1 199 X",
    "HTTP/1.1 000 X",
    "HTTP/2 200 OK",
  ],
  ...["+5", "0x5", "-1", "5, 5", "5\r\nContent-Length: 6", ""].map((length) => `${ok}\r\nContent-Length: ${length}`),
  ...["X Y: 1", ": 1", "X", "X: a\rb", "X: a\nb", "X: a\0b", " X: 1", "X\n: 1"].map((line) => `${ok}\r\n${line}`),
];

/** A worker that sends these frames as its response to the first request. */
function attack(t: TestContext, frames: readonly Buffer[], byBytes = false): Promise<Linked> {
  return listen(t, (socket) => {
    let got = 0;
    socket.on("data", async ({ length }: Buffer) => {
      const isFirst = got < 17 + token.length && got + length >= 17 + token.length;
      got += length;
      if (!isFirst) return;
      const all = Buffer.concat(frames);
      if (!byBytes) socket.write(all);
      else for (const byte of all) await new Promise((resolve) => socket.write(Buffer.of(byte), resolve));
    });
  });
}

describe("a worker that sends", () => {
  for (const [what, frames] of Object.entries(hostile)) {
    test(`${what} loses the connection, and the host gets the reason`, async (t) => {
      const { link, reasons } = await attack(t, frames);
      link.send(get()).response.catch(() => undefined);
      await eventually("the host gets the reason", () => reasons.length > 0);
      assert.equal(reasons.length, 1);
      assert.match(String(reasons[0]), /\w/);
    });
  }

  for (const head of heads) {
    test(`the head ${JSON.stringify(head)} fails that request alone`, async (t) => {
      const { link, reasons } = await attack(t, [frameOf(response, 0, true, head, "ok")]);
      await assert.rejects(link.send(get()).response, { reason: "bad_answer" });
      assert.deepEqual(reasons, []);
    });
  }

  test("its response byte by byte is understood", async (t) => {
    const frames = [
      frameOf(interim, 0, true, "HTTP/1.1 103 Early Hints\r\nLink: </a>"),
      frameOf(response, 0, false, `${ok}\r\nX-A: 1`, "he"),
      frameOf(data, 0, false, "", "llo"),
      frameOf(end, 0, true),
    ];
    const { link, reasons } = await attack(t, frames, true);
    assert.equal(await textOf(await link.send(get()).response), "hello");
    assert.deepEqual(reasons, []);
  });

  test("a body in countless small pieces leaves the host most of its time", async (t) => {
    const count = 20_000;
    const pieces = Array.from({ length: count }, () => frameOf(data, 0, false, "", "x"));
    const { link } = await attack(t, [frameOf(response, 0, false, ok), ...pieces, frameOf(end, 0, true)]);
    let turns = 0;
    const timer = setInterval(() => (turns += 1), 1);
    t.after(() => clearInterval(timer));
    const text = await textOf(await link.send(get()).response);
    assert.equal(text, "x".repeat(count));
    // 256 pieces are handled between two of its turns.
    assert.ok(turns > count / 256 / 2, `other work had ${turns} turns`);
  });

  test("its credit byte by byte gets the body of the request in larger pieces", async (t) => {
    const count = 200;
    const received: number[] = [];
    let isDone = false;
    const { link } = await listen(t, (socket) => {
      let window = WINDOW_BYTES;
      socket.on("data", async ({ length }: Buffer) => {
        received.push(length);
        const isFirst = window > 0;
        window -= length;
        if (!isFirst || window > 0) return;
        for (let n = 0; n < count; n += 1) {
          socket.write(frameOf(credit, 0, true, "1"));
          await sleep(0);
        }
        isDone = true;
      });
    });
    const body = new Uint8Array(WINDOW_BYTES + count);
    void link.send({ ...get(), head: ["POST", ...get().head.slice(1)], body }).response.catch(() => undefined);
    await eventually("the worker has asked for everything", () => isDone);
    const sum = () => received.reduce((all, length) => all + length, 0);
    await eventually("the body is sent", () => sum() > WINDOW_BYTES + count);
    // The body, the head and some prefixes: not one for each byte.
    assert.ok(sum() < WINDOW_BYTES + count + 500, `${sum()} bytes`);
  });

  test("less than Content-Length announces fails the body", async (t) => {
    const frames = [frameOf(response, 0, false, `${ok}\r\nContent-Length: 5`, "he"), frameOf(end, 0, true)];
    const { link } = await attack(t, frames);
    await assert.rejects(link.send(get()).response.then(textOf));
    const whole = await attack(t, [frameOf(response, 0, true, `${ok}\r\nContent-Length: 5`, "he")]);
    await assert.rejects(whole.link.send(get()).response.then(textOf));
  });

  test("more than Content-Length announces does not lengthen the body", async (t) => {
    const frames = [frameOf(response, 0, false, `${ok}\r\nContent-Length: 2`, "hello"), frameOf(end, 0, true)];
    const { link } = await attack(t, frames);
    assert.equal(await textOf(await link.send(get()).response), "he");
    const whole = await attack(t, [frameOf(response, 0, true, `${ok}\r\nContent-Length: 2`, "hello")]);
    assert.equal(await textOf(await whole.link.send(get()).response), "he");
  });

  test("an abort fails that request alone", async (t) => {
    const { link, reasons } = await attack(t, [frameOf(abort, 0, true)]);
    await assert.rejects(link.send(get()).response, { reason: "lost" });
    assert.deepEqual(reasons, []);
  });
});

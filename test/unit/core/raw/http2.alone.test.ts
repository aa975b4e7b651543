/** HTTP/2 clients that misbehave. */
import assert from "node:assert/strict";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { EventEmitter, once } from "node:events";
import http2 from "node:http2";
import { describe, test } from "node:test";
import type { TLSSocket } from "node:tls";
import { frame, openFrames, requestBlock, requestFrame, resetFrame } from "#test/support/frames.ts";
import { withHost } from "#test/support/host.ts";
import { RawConnection } from "#test/support/raw.ts";

let running = 0;
let most = 0;
let begun = 0;

const host = withHost({
  config: { http_max_streams: 50 },
  modules: {
    mod_http_busy(module) {
      module.depends("http");
      module.provides("http", {
        route: {
          GET: () => "still here",
          async "GET /work"({ request, response }) {
            begun += 1;
            running += 1;
            most = Math.max(most, running);
            response.on_destroy = () => {
              running -= 1;
            };
            await once(request.signal, "abort");
            return undefined;
          },
        },
      });
    },
  },
});

const open = () => {
  const session = http2.connect(`https://127.0.0.1:${host().https}`, { rejectUnauthorized: false });
  session.on("error", () => undefined);
  return session;
};

/** Resolves when the connection is closed, even while the test still writes to it. */
async function closed(socket: TLSSocket): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    socket.once("close", resolve);
    AbortSignal.timeout(60_000).addEventListener("abort", () => reject(new Error("The connection stays open")));
  });
}

/**
 * Opens streams and resets each at once, until the server closes the connection or `count` were
 * sent.
 */
async function rapidReset(count: number): Promise<{ sent: number; ended: boolean }> {
  const socket = await openFrames(host().https);
  let sent = 0;
  let ended = false;
  socket.once("close", () => {
    ended = true;
  });
  const bulk = 100;
  while (sent < count && !ended) {
    const frames: Buffer[] = [];
    for (const last = sent + bulk; sent < last; sent++) {
      frames.push(requestFrame(2 * sent + 1, "GET", "/busy/work"), resetFrame(2 * sent + 1));
    }
    socket.write(Buffer.concat(frames));
    await new Promise(setImmediate);
  }
  if (!ended) await closed(socket).catch(() => undefined);
  socket.destroy();
  return { sent, ended };
}

test("after a rapid reset the server still serves others, ends the session and retains no stream", async () => {
  const before = process.memoryUsage().rss;
  const attacks = [rapidReset(20_000), rapidReset(20_000)];
  for (let n = 0; n < 5; n++) assert.equal(await host().client("HTTP/2").text("/busy"), "still here");
  const results = await Promise.all(attacks);
  assert.ok(
    results.every(({ ended }) => ended),
    `the sessions end: ${JSON.stringify(results)}`,
  );
  assert.equal(await host().client("HTTP/2").text("/busy"), "still here");
  for (let n = 0; n < 100 && running > 0; n++) await new Promise(setImmediate);
  assert.equal(running, 0, "every handler was notified that its client is gone");
  assert.ok(most <= 2 * 50, `${most} handlers at the same time`);
  assert.ok(process.memoryUsage().rss - before < 200 * 1024 * 1024, "memory stays bounded");
});

test("after a rapid reset by many sessions, few of their streams are opened, and hardly any handler is called", async () => {
  let opened = 0;
  const count = () => {
    opened += 1;
  };
  begun = 0;
  subscribe("http2.server.stream.created", count);
  try {
    const attacks = Array.from({ length: 20 }, () => rapidReset(2000));
    const responses = Array.from({ length: 5 }, () => host().client("HTTP/2").text("/busy"));
    assert.deepEqual(await Promise.all(responses), Array(5).fill("still here"));
    const results = await Promise.all(attacks);
    assert.ok(
      results.every(({ ended }) => ended),
      JSON.stringify(results),
    );
  } finally {
    unsubscribe("http2.server.stream.created", count);
  }
  while (running > 0) await new Promise(setImmediate);
  // nghttp2 alone would let each session open and reset 300.
  assert.ok(opened < 3000, `${opened} streams of 40,000`);
  assert.ok(begun < 1500, `${begun} handlers`);
});

test("a client that cancels some of its requests keeps its session", async () => {
  const session = open();
  await once(session, "connect");
  for (let round = 0; round < 5; round += 1) {
    const streams = Array.from({ length: 40 }, () => session.request({ ":path": "/busy/work" }));
    for (const stream of streams) stream.on("error", () => undefined).close(http2.constants.NGHTTP2_CANCEL);
    const response = session.request({ ":path": "/busy" }).setEncoding("utf8");
    assert.equal((await response.toArray()).join(""), "still here");
  }
  session.destroy();
});

test("no more than http_max_streams streams of a connection run at the same time", async () => {
  most = 0;
  const session = open();
  await once(session, "connect");
  const streams = Array.from({ length: 120 }, () => session.request({ ":path": "/busy/work" }));
  for (const stream of streams) stream.on("error", () => undefined);
  while (running < 50) await new Promise(setImmediate);
  assert.equal(await host().client("HTTPS/1.1").text("/busy"), "still here");
  assert.equal(most, 50);
  session.destroy();
  while (running > 0) await new Promise(setImmediate);
});

test("bytes that are not HTTP/2 end the session and affect nothing else", async () => {
  const session = open();
  await once(session, "connect");
  session.socket.destroy();
  using connection = await RawConnection.open(host().https);
  connection.write("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".repeat(20));
  await connection.end();
  assert.equal(await host().client("HTTP/2").text("/busy"), "still here");
});

test("headers that belong to an HTTP/1 connection do not appear in HTTP/2 responses", async () => {
  const reply = await host().client("HTTP/2").request("/busy");
  for (const name of ["connection", "keep-alive", "transfer-encoding"]) assert.equal(reply.header(name), undefined);
});

describe("a session that ends while the scheduler checks it", () => {
  const judged = withHost({
    modules: {
      mod_http_judged(module) {
        module.depends("http");
        module.provides("http", {
          middleware: ({ req, res }) => {
            const { session } = (req as unknown as http2.Http2ServerRequest).stream ?? {};
            res.once("close", () => {
              session?.emit("timeout");
              session?.destroy();
            });
            res.statusCode = 200;
            res.end("judged");
          },
        });
      },
    },
  });

  test("is closed, and the host keeps running", async () => {
    const session = http2.connect(`https://127.0.0.1:${judged().https}`, { rejectUnauthorized: false });
    session.on("error", () => undefined);
    const over = once(session, "close", { signal: AbortSignal.timeout(120_000) });
    session
      .request({ ":path": "/judged" })
      .on("error", () => undefined)
      .resume()
      .end();
    await over;
    assert.equal(await judged().client("HTTP/1.1").text("/judged"), "judged");
  });
});

describe("an HTTP/2 client that makes no progress", { concurrency: true }, () => {
  const heard = new EventEmitter();
  const hasty = withHost({
    config: { http_progress_timeout: 0.4, http_idle_timeout: 0.4, http_head_timeout: 0.4 },
    modules: {
      mod_http_still(module) {
        module.depends("http");
        module.provides("http", {
          route: {
            "GET /endless"({ response }) {
              response.on_destroy = () => heard.emit("endless");
              return (async function* () {
                for (;;) yield Buffer.alloc(65_536);
              })();
            },
            "POST /body"({ request }) {
              return `${request.body_bytes.length}`;
            },
          },
        });
      },
    },
  });

  test("is cut if the window of its stream stays closed", async () => {
    const socket = await openFrames(hasty().https, 0);
    const cut = once(heard, "endless", { signal: AbortSignal.timeout(60_000) });
    socket.write(requestFrame(1, "GET", "/still/endless"));
    await cut;
    socket.destroy();
  });

  test("gets 408 if its body never arrives, and the session ends when it is idle", async () => {
    const session = http2.connect(`https://127.0.0.1:${hasty().https}`, { rejectUnauthorized: false });
    session.on("error", () => undefined);
    const over = once(session, "close", { signal: AbortSignal.timeout(60_000) });
    const stream = session.request({ ":method": "POST", ":path": "/still/body" });
    let status = 0;
    stream.on("response", (headers) => {
      status = Number(headers[":status"]);
    });
    stream.on("error", () => undefined).resume();
    await over;
    assert.equal(status, 408);
  });

  test("is cut if its header block never ends", async () => {
    const socket = await openFrames(hasty().https);
    const over = closed(socket);
    socket.write(frame("headers", 0, 1, requestBlock("GET", "/still/endless")));
    const flood = setInterval(() => socket.write(frame("continuation", 0, 1, Buffer.alloc(1000, 0x0f))), 5);
    try {
      await over;
    } finally {
      clearInterval(flood);
      socket.destroy();
    }
  });

  test("is closed if it sends nothing after the TLS handshake", async () => {
    const socket = await openFrames(hasty().https);
    await closed(socket);
  });
});

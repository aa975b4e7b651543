import assert from "node:assert/strict";
import { once } from "node:events";
import http2 from "node:http2";
import { describe, test } from "node:test";
import type { HttpFinishedEvent } from "#core/types.ts";
import { startHost } from "#test/support/host.ts";

const { NGHTTP2_CANCEL, NGHTTP2_INTERNAL_ERROR, NGHTTP2_REFUSED_STREAM } = http2.constants;

/**
 * Starts a host whose handlers never end by themselves. Returns what it reported about each request
 * at its end.
 */
async function start() {
  const finished = Promise.withResolvers<HttpFinishedEvent>();
  const host = await startHost({
    modules: {
      mod_slow(module) {
        module.depends("http");
        module.provides("http", {
          route: {
            "GET /": ({ request }) =>
              new Promise((_resolve, reject) => request.signal.addEventListener("abort", reject)),
            "GET /part": async function* ({ request }: { request: { signal: AbortSignal } }) {
              yield "part";
              await once(request.signal, "abort");
            },
            "POST /": ({ request }) => request.body,
          },
        });
        module.hook("http-finished", (event) => finished.resolve(event));
      },
    },
  });
  const session = http2.connect(`https://127.0.0.1:${host.https}`, { rejectUnauthorized: false });
  session.on("error", () => undefined);
  return {
    host,
    session,
    finished: finished.promise,
    async [Symbol.asyncDispose]() {
      session.destroy();
      await host.stop();
    },
  };
}

describe("an HTTP/2 stream that the client resets", () => {
  for (const code of [NGHTTP2_CANCEL, NGHTTP2_INTERNAL_ERROR, NGHTTP2_REFUSED_STREAM]) {
    test(`in the middle of its request body does not count as a failure, nor as complete (code ${code})`, async () => {
      await using server = await start();
      const stream = server.session.request({ ":method": "POST", ":path": "/slow/", "content-length": "100" });
      stream.on("error", () => undefined);
      stream.write("abc", () => stream.close(code));
      const event = await server.finished;
      await new Promise(setImmediate);
      assert.deepEqual([event.complete, event.status], [false, 0]);
      assert.doesNotMatch(server.host.log(), /"level":"error"/);
    });
  }

  test("before its response does not count as a failure, nor as complete", async () => {
    await using server = await start();
    const stream = server.session.request({ ":path": "/slow/" });
    stream.on("error", () => undefined);
    await new Promise((resolve) => server.session.ping(resolve));
    stream.close(NGHTTP2_CANCEL);
    const event = await server.finished;
    await new Promise(setImmediate);
    assert.deepEqual([event.complete, event.status, event.request.signal.aborted], [false, 0, true]);
    assert.doesNotMatch(server.host.log(), /"level":"error"/);
  });

  test("in the middle of its response does not count as complete", async () => {
    await using server = await start();
    const stream = server.session.request({ ":path": "/slow/part" });
    stream.on("error", () => undefined);
    await once(stream, "data");
    stream.close(NGHTTP2_CANCEL);
    const event = await server.finished;
    assert.deepEqual([event.complete, event.status, event.bytes], [false, 200, 4]);
  });
});

test("an HTTP/2 response that was read to its end is complete", async () => {
  await using server = await start();
  const stream = server.session.request({ ":method": "POST", ":path": "/slow/" });
  stream.end("abc");
  await once(stream.resume(), "close");
  const event = await server.finished;
  assert.deepEqual([event.complete, event.status], [true, 200]);
});

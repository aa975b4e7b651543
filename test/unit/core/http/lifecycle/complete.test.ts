/**
 * Tests when a response counts as complete: `complete` of `http-finished`. The request log says
 * "client left" for all others.
 */
import assert from "node:assert/strict";
import { connect } from "node:net";
import { describe, test } from "node:test";
import type { Handler, HttpFinishedEvent } from "#core/types.ts";
import { TestService } from "#test/support/service.ts";

/**
 * Sends a request, leaves as soon as `enough` has arrived, and returns what the host reports about
 * the request.
 */
async function leftAfter(enough: string, handler: Handler, request = "GET /app/ HTTP/1.1\r\n"): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<HttpFinishedEvent>();
  await using host = await TestService.start({ route: { "GET /": handler, "POST /": handler } });
  host.hook("http-finished", resolve);
  const socket = connect({ port: host.port, host: "127.0.0.1" });
  socket.write(`${request}Host: a\r\n\r\n`);
  let got = "";
  for await (const piece of socket) {
    got += piece;
    if (got.includes(enough)) break;
  }
  assert.ok(got.includes(enough), got);
  return (await promise).complete;
}

/**
 * A body that ends only when the client has left, as that of a file does while the file is being
 * closed.
 */
const slowEnd =
  (content_length?: number): Handler =>
  ({ response }) => {
    const left = new Promise<void>((resolve) => {
      response.on_destroy = resolve;
    });
    const body = (async function* () {
      yield "half";
      yield "whole";
      await left;
    })();
    return { headers: { content_length }, body };
  };

describe("a response counts as complete", () => {
  test("for a client that closes when it has all announced bytes, before the body has ended", async () => {
    assert.equal(await leftAfter("whole", slowEnd(9)), true);
  });

  test("for a client that closes when its unsent body is refused", async () => {
    const refused = "POST /app/ HTTP/1.1\r\nContent-Length: 100000\r\n";
    assert.equal(await leftAfter("\r\n\r\n413 ", () => "never asked", refused), true);
  });

  test("only for a client that has all bytes and can know that", async () => {
    assert.equal(await leftAfter("half", slowEnd(10)), false);
    assert.equal(await leftAfter("whole", slowEnd()), false);
  });
});

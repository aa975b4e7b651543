import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { HttpRequest } from "#core/types.ts";
import { DnsLinks } from "#modules/mod_http_gateway/hosts/dns_links.ts";
import { PathBlocks } from "#modules/mod_http_gateway/path_blocks.ts";
import { Reading } from "#modules/mod_http_gateway/reading.ts";
import type { NodeModule } from "#node/index.ts";

const node = { lowLevel: { reader: () => async () => new Uint8Array() } } as unknown as NodeModule;

function started(offline = false) {
  const client = new AbortController();
  const request = { signal: client.signal } as HttpRequest;
  const bounds = {
    stallTime: 1000,
    totalTime: 3_600_000,
    offline,
    isGone: () => client.signal.aborted,
    blocks: new PathBlocks(node),
    links: new DnsLinks(node),
  };
  return { reading: new Reading(node, request, bounds), client };
}

/**
 * A body whose second piece arrives when `give` is called, and which fails when the signal aborts.
 */
function pieces({ signal }: Reading) {
  const given = Promise.withResolvers<void>();
  signal?.addEventListener("abort", () => given.reject(signal.reason));
  async function* body() {
    yield "first";
    await given.promise;
    yield "second";
  }
  return { body: body(), give: () => given.resolve() };
}

describe("a response that waits for bytes", () => {
  test("a response breaks off when the stall time is over", async (t) => {
    t.mock.timers.enable({ apis: ["setTimeout"] });
    const { reading } = started();
    const { body } = pieces(reading);
    const sent = reading.body(body)[Symbol.asyncIterator]();
    assert.equal((await sent.next()).value, "first");
    const next = sent.next();
    await Promise.resolve();
    t.mock.timers.tick(1001);
    await assert.rejects(next, { name: "HttpError", code: 404 });
  });

  test("a response does not time out while the client is slow", async (t) => {
    t.mock.timers.enable({ apis: ["setTimeout"] });
    const { reading } = started();
    const { body, give } = pieces(reading);
    const sent = reading.body(body)[Symbol.asyncIterator]();
    await sent.next();
    t.mock.timers.tick(60_000);
    give();
    assert.equal((await sent.next()).value, "second");
    assert.equal((await sent.next()).done, true);
    t.mock.timers.tick(60_000);
    assert.equal(reading.signal?.aborted, false);
  });

  test("a response is aborted when the client disconnects", () => {
    const { reading, client } = started();
    client.abort();
    assert.equal(reading.signal?.aborted, true);
    reading.end();
  });

  test("a response has no signal if all content is on this machine", () =>
    assert.equal(started(true).reading.signal, undefined));

  test("a response breaks off if there are more or fewer bytes than declared", async () => {
    const { reading } = started(true);
    const all = async (length: number) => {
      const sent: unknown[] = [];
      for await (const piece of reading.body(digits(), { length })) sent.push(piece);
      return sent.length;
    };
    async function* digits() {
      yield "1234";
      yield "56";
    }
    assert.equal(await all(6), 2);
    for (const length of [5, 7]) await assert.rejects(all(length), { name: "HttpError" }, `${length}`);
  });
});

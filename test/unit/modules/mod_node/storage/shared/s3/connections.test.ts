/** Connections receive into buffers that they reuse. Data that is unread is never overwritten. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { createServer, type RequestListener, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo, Server } from "node:net";
import { test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { getCACertificates, setDefaultCACertificates } from "node:tls";
import { makeSelfSigned } from "#core/tls/self_signed.ts";
import { openS3 } from "#node/storage/shared/s3/client.ts";
import type { ObjectStore } from "#node/storage/shared/s3/objects.ts";
import { keystream } from "#test/support/content.ts";
import { eventually } from "#test/support/eventually.ts";

/**
 * Several times more than a connection receives at a time, but less than the system buffers for
 * one.
 */
const content = Buffer.concat([...keystream(1024 * 1024, 1)]);

interface Setting extends AsyncDisposable {
  readonly store: ObjectStore;
  /** Responses whose last byte was given to the system. */
  readonly sent: () => number;
}

/** A server that sends the content to every client in separate pieces of this length. */
async function setUp(pieceBytes: number, listen: (reply: RequestListener) => Server): Promise<Setting> {
  let sent = 0;
  const send = async (response: ServerResponse, from: number, to: number) => {
    for (let at = from; at < to; at += pieceBytes) {
      response.write(content.subarray(at, Math.min(to, at + pieceBytes)));
      await nextTurn();
    }
    response.end();
    sent += 1;
  };
  const server = listen((request, response) => {
    const [, first, last] = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? "") ?? [];
    const [from, to] = first === undefined ? [0, content.length] : [Number(first), Number(last) + 1];
    const range = first === undefined ? {} : { "content-range": `bytes ${from}-${to - 1}/${content.length}` };
    // With "chunked", each piece has its own head.
    const length = request.url?.endsWith("chunked") ? {} : { "content-length": to - from };
    response.writeHead(first === undefined ? 200 : 206, { etag: '"1"', ...length, ...range });
    void send(response, from, to);
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  const scheme = "setSecureContext" in server ? "https" : "http";
  const endpoint = `${scheme}://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const environment = { AWS_ACCESS_KEY_ID: "test", AWS_SECRET_ACCESS_KEY: "test-secret" };
  const store = openS3({ url: "s3://bucket", endpoint }, environment);
  return {
    store,
    sent: () => sent,
    async [Symbol.asyncDispose]() {
      await store.close();
      server.close();
    },
  };
}

const whole = { start: 0, length: content.length };
const digest = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");

async function readSlowly({ store, sent }: Setting, key: string): Promise<void> {
  const { body } = (await store.stream(key, { range: whole })) ?? assert.fail();
  const before = sent();
  const pieces: Uint8Array[] = [];
  for await (const piece of body) {
    pieces.push(piece);
    if (pieces.length === 1) await eventually("all is on its way", () => sent() > before);
  }
  assert.equal(digest(Buffer.concat(pieces)), digest(content));
}

for (const [name, pieceBytes] of [
  ["small pieces", 5000],
  ["large pieces", 300_000],
] as const) {
  for (const key of ["sized", "chunked"]) {
    test(`a slow reader gets the sent bytes, in ${name}, ${key}`, async () => {
      await using setting = await setUp(pieceBytes, (reply) => createServer(reply));
      await readSlowly(setting, key);
    });
  }

  test(`concurrent readers get the sent bytes, in ${name}`, async () => {
    await using setting = await setUp(pieceBytes, (reply) => createServer(reply));
    const reads = Array.from({ length: 8 }, async (_, at) => {
      const start = at * 1000;
      const seen: number[] = [];
      const into = new Uint8Array(content.length);
      const onProgress = (there: number) => {
        seen.push(there);
        assert.ok(Buffer.compare(into.subarray(0, there), content.subarray(start, start + there)) === 0);
      };
      const read = await setting.store.read("sized", { start, length: content.length - start }, { into, onProgress });
      assert.equal(digest(read ?? assert.fail()), digest(content.subarray(start)));
      assert.equal(seen.at(-1), content.length - start);
    });
    await Promise.all(reads);
  });
}

test("readers over TLS get the sent bytes as well", async (t) => {
  const pair = await makeSelfSigned(["127.0.0.1"]);
  const known = getCACertificates("default");
  setDefaultCACertificates([...known, pair.certificate]);
  t.after(() => setDefaultCACertificates(known));
  await using setting = await setUp(5000, (reply) => createTlsServer({ key: pair.key, cert: pair.certificate }, reply));
  assert.equal(digest((await setting.store.read("sized", whole)) ?? assert.fail()), digest(content));
  await readSlowly(setting, "chunked");
});

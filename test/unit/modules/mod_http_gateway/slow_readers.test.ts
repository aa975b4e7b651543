/**
 * Clients that read nothing for a while occupy all pooled buffers. Everybody is then served without
 * the pool, in slices.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { type IncomingMessage, request as request1 } from "node:http";
import { connect } from "node:http2";
import { request as requestTls } from "node:https";
import type { Readable } from "node:stream";
import { after, before, describe, test } from "node:test";
import { keystream } from "#test/support/content.ts";
import { type GatewayHost, startGatewayWith } from "./support.ts";

const BLOCK = 1_000_000;
/**
 * Each reader is sent one block while a second one is ready: together they occupy more than the
 * limit of the pool.
 */
const READERS = 40;

let host: GatewayHost;
let film: Buffer;
const cids = { film: "", leaf: "" };
before(async () => {
  const [part = Buffer.alloc(0)] = [Buffer.concat([...keystream(BLOCK, 3)])];
  // A repeated block is stored once, and is as slow to send.
  film = Buffer.concat(new Array<Buffer>(8).fill(part));
  host = await startGatewayWith(
    async (node) => {
      const options = { chunker: `size-${BLOCK}`, rawLeaves: true, cidVersion: 1 } as const;
      cids.film = String((await node.add({ content: film }, options)).cid);
      cids.leaf = String((await node.add({ content: part }, options)).cid);
    },
    // The slow clients must not be disconnected by a timeout.
    { https_ports: [0], http_progress_timeout: 3600, http_max_unsent: 2 ** 30 },
  );
});
after(() => host?.stop());

type SendRequest = (path: string) => Promise<{ status: number; body: Readable; close: () => void }>;

const overHttp1 =
  (request: typeof request1, port: () => number): SendRequest =>
  async (path) => {
    const outgoing = request({ port: port(), host: "127.0.0.1", path, agent: false, ...{ rejectUnauthorized: false } });
    outgoing.end();
    const [incoming] = (await once(outgoing, "response")) as [IncomingMessage];
    return { status: incoming.statusCode ?? 0, body: incoming, close: () => outgoing.destroy() };
  };

const ways: Readonly<Record<string, SendRequest>> = {
  "HTTP/1.1": overHttp1(request1, () => host.http),
  HTTPS: overHttp1(requestTls, () => host.https),
  "HTTP/2": async (path) => {
    const session = connect(`https://127.0.0.1:${host.https}`, { rejectUnauthorized: false });
    const stream = session.request({ ":path": path }, { endStream: true });
    const [headers] = await once(stream, "response");
    return { status: Number(headers[":status"]), body: stream, close: () => session.destroy() };
  },
};

const contentOf = async (body: Readable): Promise<Buffer> => Buffer.concat(await body.toArray());

describe("while slow clients occupy all pooled buffers", () => {
  for (const [way, ask] of Object.entries(ways)) {
    test(`other clients get complete responses over ${way}, and the slow clients do so in the end`, async () => {
      const slow = await Promise.all(Array.from({ length: READERS }, () => ask(`/ipfs/${cids.film}?filename=a.bin`)));
      for (const path of [`/ipfs/${cids.film}?filename=a.bin`, `/ipfs/${cids.leaf}?format=raw`]) {
        const { status, body, close } = await ask(path);
        assert.equal(status, 200);
        const content = await contentOf(body);
        assert.ok(content.equals(path.endsWith("raw") ? film.subarray(0, BLOCK) : film), path);
        close();
      }
      for (const format of ["tar", "car&car-dups=y"]) {
        const { body, close } = await ask(`/ipfs/${cids.film}?format=${format}`);
        const archive = await contentOf(body);
        const first = archive.indexOf(film.subarray(0, 64));
        assert.ok(first > 0 && archive.subarray(first, first + BLOCK).equals(film.subarray(0, BLOCK)), format);
        assert.ok(archive.length > film.length, format);
        close();
      }
      for (const [at, { status, body, close }] of slow.entries()) {
        assert.equal(status, 200);
        // Reading one in ten to the end is enough; the others only had to occupy memory.
        if (at % 10 === 9) assert.ok((await contentOf(body)).equals(film));
        close();
      }
    });
  }
});

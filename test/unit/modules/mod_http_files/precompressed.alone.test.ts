import assert from "node:assert/strict";
import { once } from "node:events";
import { appendFile, readdir, readlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { before, describe, test } from "node:test";
import { eventually } from "#test/support/eventually.ts";
import { get, server, www } from "./served.ts";

describe("precompressed files", () => {
  const packed = (acceptEncoding?: string) =>
    get("/packed.js", acceptEncoding === undefined ? {} : { "accept-encoding": acceptEncoding });

  test("are chosen by the weights of Accept-Encoding", async () => {
    const cases: [string | undefined, string, string | undefined][] = [
      [undefined, "plain", undefined],
      ["", "plain", undefined],
      ["deflate", "plain", undefined],
      ["gzip, deflate, br", "brotli!", "br"],
      ["gzip", "gzipped", "gzip"],
      ["X-Gzip", "gzipped", "gzip"],
      ["gzip;q=1, br;q=0.5", "gzipped", "gzip"],
      ["gzip;q=0.5, br;q=0", "gzipped", "gzip"],
      ["*", "brotli!", "br"],
      ["*, br;q=0", "gzipped", "gzip"],
      ["identity, gzip;q=0.5", "plain", undefined],
      ["br;q=0, gzip;q=0.0", "plain", undefined],
    ];
    for (const [accepted, text, coding] of cases) {
      const response = await packed(accepted);
      assert.deepEqual([response.text, response.headers["content-encoding"]], [text, coding], String(accepted));
      assert.equal(response.headers.vary, "Accept-Encoding");
      assert.equal(response.headers["content-type"], "text/javascript; charset=utf-8");
    }
  });

  test("have their own tag, and ranges of their own bytes", async () => {
    const tags = await Promise.all(
      [undefined, "br", "gzip"].map(async (coding) => (await packed(coding)).headers.etag),
    );
    assert.equal(new Set(tags).size, 3);
    const { status, text } = await get("/packed.js", { "accept-encoding": "br", range: "bytes=0-2" });
    assert.deepEqual([status, text], [206, "bro"]);
    assert.equal((await get("/packed.js", { "accept-encoding": "br", "if-none-match": tags[1] ?? "" })).status, 304);
    assert.equal((await get("/packed.js", { "accept-encoding": "gzip", "if-none-match": tags[1] ?? "" })).status, 200);
  });

  test("may exist for one coding only, and are plain files by their own name", async () => {
    assert.equal((await get("/only.css", { "accept-encoding": "br, gzip" })).headers["content-encoding"], "gzip");
    const { headers, text } = await get("/packed.js.gz", { "accept-encoding": "gzip" });
    assert.deepEqual([text, headers["content-encoding"], headers.vary], ["gzipped", undefined, undefined]);
  });

  test("add Vary to an existing value", async () => {
    assert.equal((await server.fetch("/app/typed/packed.js")).headers.vary, "Origin, Accept-Encoding");
    assert.equal((await server.fetch("/app/typed/digits.txt")).headers.vary, "Origin");
  });
});

describe("large files", () => {
  const size = 48 * 1024 * 1024;
  const openHandles = async (path: string) => {
    let count = 0;
    for (const fd of await readdir("/proc/self/fd")) {
      if ((await readlink(`/proc/self/fd/${fd}`).catch(() => "")) === path) count += 1;
    }
    return count;
  };

  before(() => writeFile(join(www, "large.bin"), Buffer.alloc(size, "abcdefgh")));

  test("arrive completely", async () => {
    const finished = once(server.events, "finished");
    const { body } = await get("/large.bin");
    await finished;
    assert.ok(body.equals(Buffer.alloc(size, "abcdefgh")));
  });

  test("are read no faster than the client, and closed when it leaves", {
    timeout: 300_000,
  }, async () => {
    for (const range of ["", "Range: bytes=5-\r\n", `Range: bytes=0-0,5-${size - 9}\r\n`]) {
      const finished = once(server.events, "finished");
      const socket = await server.raw(`GET /files/large.bin HTTP/1.1\r\nHost: x\r\n${range}\r\n`);
      socket.pause();
      await once(socket, "readable");
      assert.equal(await openHandles(join(www, "large.bin")), 1);
      socket.destroy();
      const [event] = await finished;
      assert.equal(event.complete, false);
      assert.ok(event.bytes < size / 2, `${event.bytes} bytes were read ahead`);
      await eventually("the file is closed", async () => (await openHandles(join(www, "large.bin"))) === 0);
    }
  });

  test("that grow while they are sent end at the announced length", async () => {
    const path = join(www, "growing.log");
    await writeFile(path, Buffer.alloc(8 * 1024 * 1024, "x"));
    const socket = await server.raw("GET /files/growing.log HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    await once(socket, "readable");
    await appendFile(path, "TAIL");
    const response = Buffer.concat(await socket.toArray());
    const head = response.indexOf("\r\n\r\n") + 4;
    assert.equal(response.length - head, 8 * 1024 * 1024);
  });
});

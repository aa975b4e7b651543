import assert from "node:assert/strict";
import { mkdir, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, test } from "node:test";
import { digits, folder, get, modifiedText, page, server, www } from "./served.ts";

describe("a file", () => {
  test("is sent with type, length and validators, and no other headers", async () => {
    const { status, headers, text } = await get("/digits.txt");
    assert.equal(status, 200);
    assert.equal(text, digits);
    const { etag = "", date, connection, ...rest } = headers;
    assert.match(etag, /^"[0-9a-f]+-a"$/);
    assert.deepEqual(rest, {
      "content-type": "text/plain; charset=utf-8",
      "content-length": "10",
      "last-modified": modifiedText,
      "accept-ranges": "bytes",
    });
  });

  test("has a type by its extension, in any case; unknown ones are sent as bytes", async () => {
    const types = async (...paths: string[]) =>
      Promise.all(paths.map(async (path) => (await server.fetch(path)).headers["content-type"]));
    assert.deepEqual(await types("/files/UPPER.HTML", "/files/noextension", "/files/data.unknownext"), [
      "text/html; charset=utf-8",
      "application/octet-stream",
      "application/octet-stream",
    ]);
    assert.deepEqual(await types("/app/aged/data.unknownext", "/app/aged/digits.txt", "/app/typed/digits.txt"), [
      "text/x-own",
      "text/x-txt",
      "text/x-mine",
    ]);
  });

  test("can be empty", async () => {
    const { status, headers, body } = await get("/empty.txt");
    assert.deepEqual([status, headers["content-length"], body.length], [200, "0", 0]);
  });

  test("can have any name", async () => {
    assert.equal((await get("/a%20b%20&%20%C3%BC%3F%23%25.txt")).text, "odd");
    assert.equal((await get("/%252e%252e")).text, "a name of dots");
    assert.equal((await get("/back%5Cslash.txt")).text, "backslash");
    assert.equal((await get("/sub%2Fdeep%2Ffile.txt")).text, "deep");
  });

  test("has the same headers for HEAD, without the body", async () => {
    const whole = await get("/digits.txt");
    const head = await server.fetch("/files/digits.txt", {}, "HEAD");
    assert.equal(head.status, 200);
    assert.equal(head.body.length, 0);
    for (const name of ["content-length", "content-type", "etag", "last-modified"]) {
      assert.equal(head.headers[name], whole.headers[name], name);
    }
  });

  test("is not found with a slash after its name", async () => {
    assert.equal((await get("/digits.txt/")).status, 404);
    assert.equal((await get("/digits.txt/x")).status, 404);
    assert.equal((await get("/missing.txt")).status, 404);
    assert.equal((await get(`/${"x".repeat(300)}`)).status, 404);
  });

  test("has Cache-Control only if max_age is set", async () => {
    assert.equal((await server.fetch("/app/aged/digits.txt")).headers["cache-control"], "max-age=60");
    assert.equal((await server.fetch("/app/aged/missing")).headers["cache-control"], undefined);
  });

  test("as its own route serves exact routes, wildcard routes and other methods", async () => {
    assert.equal((await server.fetch("/app/one")).text, digits);
    assert.equal((await server.fetch("/app/one/")).text, digits);
    assert.equal((await server.fetch("/app/one/x")).status, 404);
    const posted = await server.fetch("/app/one", { range: "bytes=0-0", "if-none-match": "*" }, "POST");
    assert.deepEqual([posted.status, posted.text], [200, digits]);
  });

  test("can be created after the route", async () => {
    assert.equal((await server.fetch("/app/later/x.txt")).status, 404);
    await mkdir(join(folder, "later"));
    await writeFile(join(folder, "later", "x.txt"), "now");
    assert.equal((await server.fetch("/app/later/x.txt")).text, "now");
  });
});

describe("a folder", () => {
  test("without a slash redirects to itself, with the query and an encoded path", async () => {
    const { status, headers } = await get("/sub?a=1&b=%20");
    assert.deepEqual([status, headers.location], [301, "/files/sub/?a=1&b=%20"]);
    await mkdir(join(www, "a ü?"));
    assert.equal((await get("/a%20%C3%BC%3F")).headers.location, "/files/a%20%C3%BC%3F/");
    assert.equal((await server.fetch("/files")).headers.location, "/files/");
  });

  test("sends its index file, the first name that exists", async () => {
    assert.deepEqual([(await get("/")).text, (await get("/sub/")).text], [page, "sub index"]);
    assert.equal((await server.fetch("/app/open/")).text, digits);
  });

  test("without an index file is 403, unless listing is on and a hook makes the page", async () => {
    assert.equal((await get("/bare/")).status, 403);
    assert.equal((await server.fetch("/app/listed/bare/")).status, 403);
    const remove = server.bus.add("directory-index", async (event: { path: string; full_path: string; root: string }) =>
      [event.path, event.full_path, event.root].join(" "),
    );
    const { status, text, headers } = await server.fetch("/app/listed/bare/");
    remove();
    assert.deepEqual([status, text], [200, `/app/listed/bare/ ${join(www, "bare")} ${www}`]);
    assert.equal(headers["content-type"], "text/html; charset=utf-8");
  });

  test("on an exact route responds as itself, without a redirect", async () => {
    const { status, text } = await server.fetch("/app/folder");
    assert.deepEqual([status, text], [200, "sub index"]);
  });

  test("can contain dot segments that stay inside", async () => {
    const socket = await server.raw(
      "GET /files/sub/../bare/./file.txt HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
    );
    const response = Buffer.concat(await socket.toArray()).toString();
    assert.match(response, /^HTTP\/1.1 200 .*bare$/s);
  });
});

describe("nothing outside of the folder is sent", () => {
  const climbing = [
    "/files/../outside.txt",
    "/files/%2e%2e/outside.txt",
    "/files/..%2foutside.txt",
    "/files/%2e%2e%2foutside.txt",
    "/files/%252e%252e/outside.txt",
    "/files/%252e%252e%252foutside.txt",
    "/files/sub/../../outside.txt",
    "/files/sub/%2e%2e/%2e%2e/outside.txt",
    "/files/..%5coutside.txt",
    "/files/....//outside.txt",
    "/files/%c0%ae%c0%ae/outside.txt",
    "/files/../wwwother/file.txt",
    "/files//../outside.txt",
    "/app/listed/../../outside.txt",
  ];
  for (const path of climbing) {
    test(`for ${path}`, async () => {
      const socket = await server.raw(`GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);
      const response = Buffer.concat(await socket.toArray()).toString();
      assert.match(response, /^HTTP\/1.1 (400|404) /);
      assert.ok(!response.includes("\r\noutside"), response);
    });
  }

  test("for a NUL, which is a 400", async () => {
    assert.equal((await get("/digits.txt%00.html")).status, 400);
  });

  test("for links that lead out or nowhere, also as precompressed form, which are 404; inner links are served", async () => {
    assert.equal((await get("/leak.txt")).status, 404);
    assert.equal((await get("/up/outside.txt")).status, 404);
    assert.equal((await get("/up/www/digits.txt")).text, digits);
    assert.equal((await get("/loop")).status, 404);
    assert.equal((await get("/inner.txt")).text, digits);
    assert.equal((await get("/trap.js", { "accept-encoding": "br" })).text, "plain");
  });

  test("for an index file that leads out, by its name or by a link on its path", async () => {
    await symlink("..", join(www, "bare", "out"));
    assert.equal((await server.fetch("/app/astray")).status, 403);
    await rm(join(www, "bare", "out"));
  });

  test("for names with a leading dot, which are 404 unless they are served", async () => {
    assert.equal((await get("/.secret")).status, 404);
    assert.equal((await get("/.hidden/secret.txt")).status, 404);
    assert.equal((await get("/%2ehidden/secret.txt")).status, 404);
    assert.equal((await server.fetch("/app/open/.hidden/secret.txt")).text, "hidden");
  });

  test("for anything but a file or folder, which is 403 and is never opened", async () => {
    assert.equal((await get("/pipe")).status, 403);
  });
});

describe("a condition", () => {
  const status = async (headers: Record<string, string>) => (await get("/digits.txt", headers)).status;

  test("in If-None-Match is the tag, weak, in a list, or any", async () => {
    const { etag = "" } = (await get("/digits.txt")).headers;
    const { status: code, headers, body } = await get("/digits.txt", { "if-none-match": etag });
    assert.deepEqual([code, body.length, headers.etag, headers["content-length"]], [304, 0, etag, undefined]);
    assert.equal(headers["content-type"], undefined);
    assert.equal(await status({ "if-none-match": `"a, b", W/${etag}, "c"` }), 304);
    assert.equal(await status({ "if-none-match": "*" }), 304);
    assert.equal(await status({ "if-none-match": '"other"' }), 200);
    assert.equal(await status({ "if-none-match": `x${etag.slice(1)}` }), 200);
    assert.equal((await server.fetch("/files/digits.txt", { "if-none-match": etag }, "HEAD")).status, 304);
  });

  test("in If-Modified-Since is compared by time, and not by text, and only without If-None-Match", async () => {
    assert.equal(await status({ "if-modified-since": modifiedText }), 304);
    assert.equal(await status({ "if-modified-since": "Mon, 06 May 2024 07:08:10 GMT" }), 304);
    assert.equal(await status({ "if-modified-since": "Monday, 06-May-24 07:08:09 GMT" }), 304);
    assert.equal(await status({ "if-modified-since": "Mon May  6 07:08:09 2024" }), 304);
    assert.equal(await status({ "if-modified-since": "Mon, 06 May 2024 07:08:08 GMT" }), 200);
    assert.equal(await status({ "if-modified-since": "yesterday" }), 200);
    assert.equal(await status({ "if-modified-since": modifiedText, "if-none-match": '"other"' }), 200);
  });

  test("in If-Match takes only strong tags, and If-Unmodified-Since is valid without it", async () => {
    const { etag = "" } = (await get("/digits.txt")).headers;
    assert.equal(await status({ "if-match": `"x", ${etag}` }), 200);
    assert.equal(await status({ "if-match": "*" }), 200);
    assert.equal(await status({ "if-match": `W/${etag}` }), 412);
    assert.equal(await status({ "if-match": '"other"' }), 412);
    assert.equal(await status({ "if-unmodified-since": modifiedText }), 200);
    assert.equal(await status({ "if-unmodified-since": "Mon, 06 May 2024 07:08:08 GMT" }), 412);
    assert.equal(await status({ "if-unmodified-since": "Mon, 06 May 2024 07:08:08 GMT", "if-match": etag }), 200);
  });

  test("in If-Match precedes If-None-Match", async () => {
    assert.equal(await status({ "if-match": '"other"', "if-none-match": "*" }), 412);
  });
});

describe("a range", () => {
  const range = (value: string, headers: Record<string, string> = {}) =>
    get("/digits.txt", { range: value, ...headers });

  test("can be from, from to, or the last bytes, and is cut at the end", async () => {
    const cases: [string, string, string][] = [
      ["bytes=2-4", "234", "bytes 2-4/10"],
      ["bytes=7-", "789", "bytes 7-9/10"],
      ["bytes=-3", "789", "bytes 7-9/10"],
      ["bytes=-30", digits, "bytes 0-9/10"],
      ["bytes=8-99999999999999999999", "89", "bytes 8-9/10"],
      ["Bytes = 0-0", "0", "bytes 0-0/10"],
      ["bytes=50-60, 1-1", "1", "bytes 1-1/10"],
    ];
    for (const [requested, text, position] of cases) {
      const response = await range(requested);
      assert.deepEqual(
        [response.status, response.text, response.headers["content-range"]],
        [206, text, position],
        requested,
      );
      assert.equal(response.headers["content-length"], String(text.length));
      assert.equal(response.headers["content-type"], "text/plain; charset=utf-8");
    }
  });

  test("can be one of several, which are sent as parts in the requested order with the right length", async () => {
    const { status, headers, text } = await range("bytes=8-9, 0-1 ,-1");
    assert.equal(status, 206);
    assert.equal(headers["content-range"], undefined);
    assert.equal(headers["content-length"], String(text.length));
    const [, boundary] = /^multipart\/byteranges; boundary=(\w+)$/.exec(headers["content-type"] ?? "") ?? [];
    const part = (position: string, bytes: string) =>
      `--${boundary}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Range: bytes ${position}/10\r\n\r\n${bytes}\r\n`;
    assert.equal(text, `${part("8-9", "89")}${part("0-1", "01")}${part("9-9", "9")}--${boundary}--\r\n`);
  });

  test("that cannot be satisfied is a 416 with the size", async () => {
    for (const requested of ["bytes=10-", "bytes=10-20,30-", "bytes=-0"]) {
      const { status, headers } = await range(requested);
      assert.deepEqual([status, headers["content-range"]], [416, "bytes */10"], requested);
    }
    assert.equal((await get("/empty.txt", { range: "bytes=0-" })).status, 416);
  });

  test("that is malformed, of another unit, or for more than the whole file is ignored", async () => {
    const many = `bytes=${Array.from({ length: 101 }, () => "0-0").join(",")}`;
    for (const requested of [
      "bytes=",
      "bytes=x",
      "bytes=4-2",
      "bytes=1-2,z",
      "lines=1-2",
      "bytes=0-9,0-9",
      "1-2",
      many,
    ]) {
      const { status, text } = await range(requested);
      assert.deepEqual([status, text], [200, digits], requested);
    }
  });

  test("with If-Range is only sent for the same state, by strong tag or exact date", async () => {
    const { etag = "" } = (await get("/digits.txt")).headers;
    const cases: [string, number][] = [
      [etag, 206],
      [`W/${etag}`, 200],
      ['"other"', 200],
      [modifiedText, 206],
      ["Mon, 06 May 2024 07:08:10 GMT", 200],
    ];
    for (const [value, status] of cases) {
      assert.equal((await range("bytes=0-1", { "if-range": value })).status, status, value);
    }
  });

  test("is checked after conditions, and HEAD has none", async () => {
    assert.equal((await range("bytes=0-1", { "if-none-match": "*" })).status, 304);
    const head = await server.fetch("/files/digits.txt", { range: "bytes=0-1" }, "HEAD");
    assert.deepEqual([head.status, head.headers["content-length"]], [200, "10"]);
  });
});

/** Parts 2 and 4 of the specification: the response object, and how a handler replies. */
import assert from "node:assert/strict";
import { mkdir, open, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { setImmediate as turn } from "node:timers/promises";
import type { HttpProvider, HttpResponse, Module } from "#core/types.ts";
import { withHost } from "#test/support/host.ts";
import { type Client, overEach } from "#test/support/transports.ts";

/** Header fields that HTTP itself requires. No other field may be added automatically. */
const protocolFields = new Set(["date", "connection", "keep-alive", "transfer-encoding"]);

const ran: string[] = [];
/** Returns the handlers that have run since the last call. */
const takeRan = () => ran.splice(0).join(", ");
/** Resolved with the state of the response of `/stream/fields` at its end. */
let ended = Promise.withResolvers<string>();

const stateOf = ({ finished, headers_sent, is_head_request }: HttpResponse) =>
  `${finished} ${headers_sent} ${is_head_request}`;

const provide = (route: HttpProvider["route"]) => (module: Module) => {
  module.depends("http");
  module.provides("http", { route });
};

/** A promise of another library. */
class Thenable {
  // biome-ignore lint/suspicious/noThenProperty: being thenable is what is tested
  then(keep: (value: string) => void): void {
    keep("thenable");
  }
}

async function* pieces() {
  yield "one, ";
  await turn();
  yield Buffer.from("two");
}

const host = withHost({
  async prepare(folder) {
    await mkdir(join(folder, "files"));
    await writeFile(join(folder, "files", "hello.txt"), "0123456789");
  },
  modules: (folder) => ({
    mod_http_res: provide({
      "GET /status"({ response }) {
        response.status_code = 418;
        return "short and stout";
      },
      "GET /default": ({ response }) => `${response.status_code}`,
      "GET /type"({ response }) {
        response.headers.content_type = "text/html; charset=utf-8";
        response.headers.x_two_words = "yes";
        response.headers.x_count = 3;
        response.headers.x_list = ["a", "b"];
        response.headers.x_none = undefined;
        return "<p>";
      },
      "GET /send": ({ response }) => response.send("sent"),
      "GET /send-nothing": ({ response }) => response.send(),
      "GET /send-preset"({ response }) {
        response.body = "preset";
        return response.send();
      },
      "GET /send-twice"({ response }) {
        response.send("first");
        response.send("second");
        return "third";
      },
      "GET /umlaut": () => "ü€",
      "GET /bare": () => "x",
      "GET /length"({ response }) {
        response.headers.content_length = 99;
        return "four";
      },
      "GET /204": () => 204,
      "GET /204-body"({ response }) {
        response.status_code = 204;
        return "never sent";
      },
      "GET /304": () => 304,
      "GET /break-value"({ response }) {
        response.headers.x_bad = "a\r\nset-cookie: evil=1";
        return "x";
      },
      "GET /break-name"({ response }) {
        response.headers["x_bad: 1\r\nset-cookie"] = "evil=1";
        return "x";
      },
      "GET /flag"({ response }) {
        response.headers.x_flag = true as never;
        return "x";
      },
    }),
    mod_http_ret: provide({
      "GET /string": () => "a body",
      "GET /empty": () => "",
      "GET /201": () => 201,
      "GET /302"({ response }) {
        response.headers.location = "/elsewhere";
        return 302;
      },
      "GET /status-body"({ response }) {
        response.body = "custom";
        return 203;
      },
      "GET /404": () => 404,
      "GET /503"({ response }) {
        response.body = "ignored";
        response.headers.content_type = "image/png";
        response.headers.retry_after = 7;
        return 503;
      },
      "GET /599": () => 599,
      "GET /later"({ response }) {
        setTimeout(() => response.send("later"), 20);
        return true;
      },
      "GET /ran": takeRan,
      "GET /later/*"() {
        ran.push("after true");
        return "never";
      },
      "GET /nothing"() {
        ran.push("exact");
      },
      "GET /*"(_event, path) {
        ran.push("wildcard");
        return path === "none" ? undefined : `wildcard got ${path}`;
      },
      "GET /null": () => null,
      "GET /false": () => false,
      "GET /object": () => ({ status_code: 202, headers: { x_from: "object" }, body: "object" }),
      "GET /object-empty": () => ({}),
      "GET /object-other": () => ({ hello: "world" }) as never,
      "GET /array": () => ["a"] as never,
      "GET /bigint": () => 1n as never,
      "GET /object-404": () => ({ status_code: 404, body: "own words" }),
      "GET /promise": async () => "promised",
      "GET /promise-number": async () => 404,
      "GET /promise-object": async () => ({ status_code: 202 }),
      "GET /promise-false": async () => false as const,
      "GET /promise-promise": () => Promise.resolve(Promise.resolve("inner")),
      async "GET /promise-nothing"() {
        await turn();
      },
      async "GET /promise-true"({ response }) {
        await turn();
        response.send("sent by itself");
        return true;
      },
      "GET /thenable": () => new Thenable() as never,
      "GET /bytes": () => new Uint8Array([0, 255, 10]),
      "GET /buffer": () => Buffer.from("buffer"),
      "GET /node-stream": () => Readable.from(["node ", "stream"]),
      "GET /web-stream": () => new Response("web stream").body as ReadableStream,
      "GET /iterable": () => pieces(),
      "GET /iterable-object": () => ({ status_code: 206, body: pieces() }),
      "GET /constant-string": "constant",
      "GET /constant-number": 404,
      "GET /constant-object": { status_code: 202, body: "constant object" },
      "GET /constant-false": false,
      "GET /function": () => (() => "x") as never,
    }),
    mod_http_stream: provide({
      "GET /trailers"({ response }) {
        response.trailers = { x_sum: "abc", x_count: 2 };
        return pieces();
      },
      "GET /trailers-late"({ response }) {
        let bytes = 0;
        response.trailer_names = ["x_bytes"];
        response.trailers = () => ({ x_bytes: bytes });
        return (async function* () {
          for await (const piece of pieces()) {
            bytes += piece.length;
            yield piece;
          }
        })();
      },
      "GET /file": ({ response }) => response.send_file(join(folder, "files", "hello.txt")),
      async "GET /handle"({ response }) {
        return response.send_file(await open(join(folder, "files", "hello.txt")));
      },
      "GET /readable": ({ response }) => response.send_file(Readable.from([Buffer.from("read me")])),
      "GET /missing": ({ response }) => response.send_file(join(folder, "files", "missing.txt")),
      "GET /destroyed"({ response }) {
        response.on_destroy = () => ran.push(`destroyed ${response.finished}`);
        return "x";
      },
      "GET /ran": takeRan,
      "GET /ended": () => ended.promise,
      "GET /fields"({ response }: { response: HttpResponse }) {
        ended = Promise.withResolvers();
        response.on_destroy = () => ended.resolve(stateOf(response));
        return stateOf(response);
      },
      async *"GET /fields-sending"({ response }: { response: HttpResponse }) {
        yield "begun, ";
        await turn();
        yield stateOf(response);
      },
    }),
  }),
});

const get = (client: Client, path: string) => client.request(path);

overEach(host, "C2.17 status_code is the response status, 200 by default", async (client) => {
  const { status, text } = await get(client, "/res/status");
  assert.deepEqual([status, text], [418, "short and stout"]);
  assert.equal(await client.text("/res/default"), "200");
});

overEach(host, "C2.18 response headers are set with underscores, content_type among them", async (client) => {
  const reply = await get(client, "/res/type");
  assert.equal(reply.header("content-type"), "text/html; charset=utf-8");
  assert.equal(reply.header("x-two-words"), "yes");
  assert.equal(reply.header("x-count"), "3");
  assert.deepEqual(
    reply.lines.filter(([name]) => name.toLowerCase() === "x-list").map(([, value]) => value),
    ["a", "b"],
  );
  assert.equal(reply.header("x-none"), undefined);
});

overEach(host, "C2.19 send transmits the response with its body", async (client) => {
  assert.equal(await client.text("/res/send"), "sent");
  assert.equal(await client.text("/res/send-preset"), "preset");
});

overEach(host, "C2.20 the body of send is optional", async (client) => {
  const reply = await get(client, "/res/send-nothing");
  assert.deepEqual([reply.status, reply.text, reply.header("content-length")], [200, "", "0"]);
});

overEach(host, "C2.21 Content-Length is set automatically, in bytes", async (client) => {
  assert.equal((await get(client, "/res/send")).header("content-length"), "4");
  assert.equal((await get(client, "/res/umlaut")).header("content-length"), "5");
  assert.equal((await get(client, "/ret/empty")).header("content-length"), "0");
  assert.equal((await get(client, "/ret/bytes")).header("content-length"), "3");
  assert.equal((await get(client, "/res/length")).header("content-length"), "4");
});

overEach(host, "C2.22 no other header is set automatically", async (client) => {
  for (const path of ["/res/bare", "/res/send", "/res/204", "/ret/iterable", "/ret/false", "/ret/object-404"]) {
    const names = (await get(client, path)).lines.map(([name]) => name.toLowerCase());
    assert.deepEqual(
      names.filter((name) => !protocolFields.has(name) && name !== "content-length"),
      [],
      path,
    );
    assert.ok(names.includes("date"), path);
    if (client.http2) assert.ok(!names.some((name) => name !== "date" && protocolFields.has(name)), path);
  }
});

overEach(host, "C4.5 a returned string is the response body", async (client) => {
  assert.equal(await client.text("/ret/string"), "a body");
  assert.equal(await client.text("/ret/empty"), "");
});

overEach(host, "C4.6 a returned number is the status code", async (client) => {
  const created = await get(client, "/ret/201");
  assert.deepEqual([created.status, created.text], [201, ""]);
  const found = await get(client, "/ret/302");
  assert.deepEqual([found.status, found.header("location")], [302, "/elsewhere"]);
  const replaced = await get(client, "/ret/status-body");
  assert.deepEqual([replaced.status, replaced.text], [203, "custom"]);
});

overEach(host, "C4.7 a returned number of 400 or more gets the error page of that code", async (client) => {
  for (const status of [404, 503, 599]) {
    const reply = await get(client, `/ret/${status}`);
    assert.equal(reply.status, status);
    assert.match(reply.text, new RegExp(`${status}`));
    assert.match(reply.header("content-type") ?? "", /^text\/html/);
    assert.doesNotMatch(reply.text, /ignored/);
  }
  assert.equal((await get(client, "/ret/503")).header("retry-after"), "7");
});

overEach(host, "C4.8 send and true: the reply may come later and no other handler runs", async (client) => {
  await client.text("/ret/ran");
  assert.deepEqual([await client.text("/ret/later"), await client.text("/ret/ran")], ["later", ""]);
});

overEach(host, "C4.9 nothing returned passes the request to the next matching handler", async (client) => {
  await client.text("/ret/ran");
  assert.equal(await client.text("/ret/nothing"), "wildcard got nothing");
  assert.equal(await client.text("/ret/ran"), "exact, wildcard");
  assert.deepEqual([await client.text("/ret/null"), await client.status("/ret/none")], ["wildcard got null", 404]);
});

overEach(host, "D20 false is an empty 200 and ends the search", async (client) => {
  await client.text("/ret/ran");
  for (const path of ["/ret/false", "/ret/promise-false", "/ret/constant-false"]) {
    assert.equal(await client.text(path), "", path);
  }
  assert.equal(await client.text("/ret/ran"), "");
});

overEach(host, "D21 a returned object is merged into the response and sent; other values are a 500", async (client) => {
  const reply = await get(client, "/ret/object");
  assert.deepEqual([reply.status, reply.text, reply.header("x-from")], [202, "object", "object"]);
  for (const path of ["object-empty", "object-other", "array", "bigint", "function"])
    assert.equal(await client.status(`/ret/${path}`), 500, path);
  const own = await get(client, "/ret/object-404");
  assert.deepEqual([own.status, own.text, own.header("content-type")], [404, "own words", undefined]);
});

overEach(host, "D22 a promise counts as the value to which it resolves", async (client) => {
  assert.equal(await client.text("/ret/promise"), "promised");
  assert.equal(await client.status("/ret/promise-number"), 404);
  assert.equal(await client.status("/ret/promise-object"), 202);
  assert.equal(await client.text("/ret/promise-promise"), "inner");
  assert.equal(await client.text("/ret/promise-true"), "sent by itself");
  assert.equal(await client.text("/ret/promise-nothing"), "wildcard got promise-nothing");
  assert.equal(await client.text("/ret/thenable"), "thenable");
});

overEach(host, "D23 a route may be a constant", async (client) => {
  assert.equal(await client.text("/ret/constant-string"), "constant");
  assert.match((await get(client, "/ret/constant-number")).text, /404/);
  const reply = await get(client, "/ret/constant-object");
  assert.deepEqual([reply.status, reply.text], [202, "constant object"]);
});

overEach(host, "D24 bytes, streams and async iterables are bodies", async (client) => {
  assert.deepEqual([...(await get(client, "/ret/bytes")).bytes], [0, 255, 10]);
  assert.equal(await client.text("/ret/buffer"), "buffer");
  assert.equal(await client.text("/ret/node-stream"), "node stream");
  assert.equal(await client.text("/ret/web-stream"), "web stream");
  assert.equal(await client.text("/ret/iterable"), "one, two");
  const reply = await get(client, "/ret/iterable-object");
  assert.deepEqual([reply.status, reply.text, reply.header("content-length")], [206, "one, two", undefined]);
});

overEach(host, "D30 a second send, and a value returned after it, are ignored", async (client) => {
  assert.equal(await client.text("/res/send-twice"), "first");
});

overEach(host, "D31 204 and 304 carry neither body nor Content-Length", async (client) => {
  for (const [path, status] of [
    ["/res/204", 204],
    ["/res/204-body", 204],
    ["/res/304", 304],
  ] as const) {
    const reply = await get(client, path);
    assert.deepEqual([reply.status, reply.text, reply.header("content-length")], [status, "", undefined], path);
    assert.equal(reply.header("transfer-encoding"), undefined);
  }
});

overEach(host, "D32 a line break in a response header is refused", async (client) => {
  for (const path of ["/res/break-value", "/res/break-name", "/res/flag"]) {
    const reply = await get(client, path);
    assert.equal(reply.status, 500, path);
    assert.equal(reply.header("set-cookie"), undefined, path);
  }
});

overEach(host, "D33 trailers follow the body and are announced", async (client) => {
  const given = await get(client, "/stream/trailers");
  assert.equal(given.text, "one, two");
  assert.match(given.header("trailer") ?? "", /x-sum.*x-count/i);
  assert.deepEqual([given.trailers["x-sum"], given.trailers["x-count"]], ["abc", "2"]);
  const late = await get(client, "/stream/trailers-late");
  assert.match(late.header("trailer") ?? "", /x-bytes/i);
  assert.equal(late.trailers["x-bytes"], "8");
});

overEach(host, "D34 send_file sends a path with ranges, a handle or a readable", async (client) => {
  const file = await get(client, "/stream/file");
  assert.deepEqual([file.status, file.text, file.header("content-length")], [200, "0123456789", "10"]);
  const part = await client.request({ path: "/stream/file", headers: { range: "bytes=2-4" } });
  assert.deepEqual([part.status, part.text, part.header("content-range")], [206, "234", "bytes 2-4/10"]);
  assert.equal(await client.text("/stream/handle"), "0123456789");
  assert.equal(await client.text("/stream/readable"), "read me");
  assert.equal(await client.status("/stream/missing"), 404);
});

overEach(host, "D35 on_destroy is called once when the response is complete", async (client) => {
  await client.text("/stream/ran");
  await client.text("/stream/destroyed");
  await client.text("/stream/fields");
  assert.equal(await client.text("/stream/ran"), "destroyed true");
});

overEach(host, "D36 finished, headers_sent and is_head_request report the state of the response", async (client) => {
  for (const method of ["GET", "HEAD"]) {
    const { text } = await client.request({ method, path: "/stream/fields" });
    assert.equal(text, method === "GET" ? "false false false" : "");
    assert.equal(await client.text("/stream/ended"), `true true ${method === "HEAD"}`);
  }
  assert.equal(await client.text("/stream/fields-sending"), "begun, false true false");
});

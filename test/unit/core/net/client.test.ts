import assert from "node:assert/strict";
import { getEventListeners, once } from "node:events";
import { Readable } from "node:stream";
import { after, before, describe, test } from "node:test";
import { type RequestError, request } from "#core/net/http.ts";
import { echo, echoPeer, failure, httpPeer, type Peer } from "./peers.ts";

let peer: Peer;
before(async () => {
  peer = await echoPeer();
});
after(async () => peer[Symbol.asyncDispose]());

describe("a request", () => {
  test("returns code, body, headers, request and protocol version", async () => {
    const { code, body, headers, request: sent, http_version } = await request(`${peer.url}/a%20b?c=d#e`);
    assert.deepEqual([code, http_version], [200, "1.1"]);
    assert.equal(JSON.parse(body).path, "/a%20b?c=d");
    assert.equal(Number(headers["content-length"]), body.length);
    assert.deepEqual([sent.method, sent.url], ["GET", `${peer.url}/a%20b?c=d`]);
  });

  test("sends Host, Connection, User-Agent and no other header by itself", async () => {
    const { headers } = echo(await request(peer.url));
    assert.deepEqual(Object.keys(headers).sort(), ["connection", "host", "user-agent"]);
    assert.equal(headers.host, peer.url.slice(7));
    assert.match(headers["user-agent"] ?? "", /^modhost\/\d+\.\d+\.\d+/);
  });

  test("accepts header names with underscores or dashes, and sends a list as one line per value", async () => {
    const { headers } = echo(
      await request(peer.url, { headers: { x_one: 1, "X-Two": "2", accept: ["a/b", "c/d"], user_agent: "me" } }),
    );
    assert.deepEqual(
      [headers["x-one"], headers["x-two"], headers.accept, headers["user-agent"]],
      ["1", "2", "a/b, c/d", "me"],
    );
  });

  test("sends Basic authorization from the URL, unless the field is set", async () => {
    const url = peer.url.replace("//", "//j%C3%BCrgen:p%40ss%zz@");
    const { headers } = echo(await request(url));
    assert.equal(headers.authorization, `Basic ${Buffer.from("jürgen:p@ss%zz").toString("base64")}`);
    const given = echo(await request(url, { headers: { authorization: "Bearer x" } }));
    assert.equal(given.headers.authorization, "Bearer x");
  });

  test("returns header names in lower case with dashes, cookies as a list, and other repeated fields joined", async () => {
    await using server = await httpPeer((_, response) => {
      response.writeHead(200, ["X-Some-Thing", "1", "X-Some-Thing", "2", "Set-Cookie", "a=1", "__proto__", "x"]).end();
    });
    const { headers } = await request(server.url);
    assert.deepEqual([headers["x-some-thing"], headers["set-cookie"]], ["1, 2", ["a=1"]]);
    assert.deepEqual(Object.getOwnPropertyDescriptor(headers, "__proto__")?.value, "x");
  });

  test("returns an error status as an ordinary result", async () => {
    await using server = await httpPeer((_, response) => response.writeHead(503).end("busy"));
    const { code, body } = await request(server.url);
    assert.deepEqual([code, body], [503, "busy"]);
  });

  test("returns an empty body for HEAD, 204 and 304", async () => {
    await using server = await httpPeer(({ url }, response) =>
      response.writeHead(Number(url?.slice(1)), url === "/200" ? { "content-length": "9" } : {}).end(),
    );
    for (const [method, path] of [["HEAD", "/200"] as const, ["GET", "/204"] as const, ["GET", "/304"] as const]) {
      assert.equal((await request(server.url + path, { method })).body, "");
    }
  });

  test("ignores interim responses", async () => {
    await using server = await httpPeer((_, response) => {
      response.writeEarlyHints({ link: "</a.css>; rel=preload" });
      response.end("final");
    });
    const { code, body } = await request(server.url);
    assert.deepEqual([code, body], [200, "final"]);
  });

  test("does not time out because its own process was suspended while the response arrived", async () => {
    const pause = new Int32Array(new SharedArrayBuffer(4));
    await using server = await httpPeer((_, response) => {
      response.end("in time");
      Atomics.wait(pause, 0, 0, 700);
    });
    assert.equal((await request(server.url, { body: "x", timeout: 0.6 })).body, "in time");
  });

  test("requests no content coding, and returns a coded body unchanged", async () => {
    const coded = Buffer.from([0x1f, 0x8b, 0xff, 0x00]);
    await using server = await httpPeer((_, response) => response.setHeader("content-encoding", "gzip").end(coded));
    const { body } = await request(server.url, { response_type: "bytes" });
    assert.deepEqual(body, coded);
  });
});

describe("a request body", () => {
  test("that is text makes it a POST of a form by default", async () => {
    const form = echo(await request(peer.url, { body: "a=ü" }));
    assert.deepEqual([form.method, form.body, form.headers["content-length"]], ["POST", "a=ü", "4"]);
    assert.equal(form.headers["content-type"], "application/x-www-form-urlencoded");
    const json = echo(
      await request(peer.url, { method: "PUT", body: "{}", headers: { content_type: "application/json" } }),
    );
    assert.deepEqual([json.method, json.headers["content-type"]], ["PUT", "application/json"]);
  });

  test("can be empty", async () => {
    const { method, headers } = echo(await request(peer.url, { body: "" }));
    assert.deepEqual([method, headers["content-length"]], ["POST", "0"]);
  });

  test("that is bytes has a length and no type, whatever its size", async () => {
    for (const length of [3, 1_000_000]) {
      const { body, headers } = echo(await request(peer.url, { body: new Uint8Array(length).fill(65) }));
      assert.deepEqual([body.length, headers["content-length"]], [length, String(length)]);
      assert.equal(headers["content-type"], undefined);
    }
  });

  test("that is a stream is sent in chunks as it arrives, or with the given length", async () => {
    const sources = [
      () => Readable.from([Buffer.from("one "), Buffer.from("two")]),
      () => new Response("one two").body as ReadableStream<Uint8Array>,
      async function* () {
        yield "one ";
        yield Buffer.from("two");
      },
    ];
    for (const source of sources) {
      const { method, body, headers } = echo(await request(peer.url, { body: source() }));
      assert.deepEqual([method, body, headers["transfer-encoding"]], ["POST", "one two", "chunked"]);
      const measured = echo(await request(peer.url, { body: source(), headers: { content_length: 7 } }));
      assert.deepEqual([measured.body, measured.headers["content-length"]], ["one two", "7"]);
    }
  });

  test("can be a form with files, or URLSearchParams", async () => {
    const form = new FormData();
    form.set("name", "value");
    form.set("file", new File(["content"], "x.txt", { type: "text/plain" }));
    const { headers, body } = echo(await request(peer.url, { body: form }));
    const { fields } = await new Response(body, { headers: { "content-type": headers["content-type"] ?? "" } })
      .formData()
      .then(async (read) => ({ fields: [read.get("name"), await (read.get("file") as File).text()] }));
    assert.deepEqual(fields, ["value", "content"]);
    assert.equal(Number(headers["content-length"]), body.length);
    assert.equal(echo(await request(peer.url, { body: new URLSearchParams({ a: "b c" }) })).body, "a=b+c");
  });

  test("that fails also fails the request", async () => {
    const broken = async function* () {
      yield "one";
      throw new Error("disk on fire");
    };
    const wrong = async function* () {
      yield 1 as unknown as string;
    };
    assert.match((await failure("body-failed", request(peer.url, { body: broken() }))).message, /disk on fire/);
    await failure("body-failed", request(peer.url, { body: wrong() }));
    await failure(
      "body-failed",
      request(peer.url, { body: Readable.from(["toolong"]), headers: { content_length: 3 } }),
    );
    const read = Readable.from(["x"]);
    await read.toArray();
    await failure("body-failed", request(peer.url, { body: read }));
    const early = new Readable({ read() {} });
    const waiting = request(peer.url, { body: early });
    early.destroy(new Error("before the connection"));
    await failure("body-failed", waiting);
  });

  test("is closed if the response arrives first", async () => {
    await using server = await httpPeer((_, response) => response.writeHead(413).end("too much"));
    const source = Readable.from(
      (async function* () {
        for (;;) yield Buffer.alloc(65_536);
      })(),
    );
    const closed = once(source, "close");
    assert.equal((await request(server.url, { body: source })).code, 413);
    await closed;
  });

  test("is closed if there is no connection", async () => {
    const source = Readable.from(["never"]);
    const closed = once(source, "close");
    await failure("connection-refused", request("http://127.0.0.1:1/", { body: source }));
    await closed;
  });

  test("may take any time: only the peer is measured", async () => {
    const slow = async function* () {
      yield "one ";
      await new Promise((resolve) => setTimeout(resolve, 500));
      yield "two";
    };
    assert.equal(echo(await request(peer.url, { body: slow(), timeout: 0.3 })).body, "one two");
  });

  test("is read no faster than the peer accepts it", async () => {
    await using server = await httpPeer(() => {});
    let produced = 0;
    let closed = false;
    const endless = async function* () {
      try {
        for (;;) {
          produced += 65_536;
          yield Buffer.alloc(65_536);
        }
      } finally {
        closed = true;
      }
    };
    await failure("timeout", request(server.url, { body: endless(), timeout: 0.2 }));
    assert.ok(produced < 32 * 1024 * 1024, `${produced} bytes were produced`);
    await new Promise(setImmediate);
    assert.ok(closed);
  });
});

describe("a streamed response", () => {
  test("is read as it arrives, no faster than its reader", async () => {
    const total = 64 * 1024 * 1024;
    const piece = Buffer.alloc(1024 * 1024);
    let written = 0;
    const stalled = Promise.withResolvers<void>();
    await using server = await httpPeer(async (_, response) => {
      for (; written < total; written += piece.length) {
        if (response.write(piece)) continue;
        const timer = setTimeout(stalled.resolve, 600);
        await once(response, "drain");
        clearTimeout(timer);
      }
      response.end();
    });
    const { body } = await request(server.url, { response_type: "stream", body_timeout: 0.5 });
    await stalled.promise;
    assert.ok(written < total / 2, `${written} bytes were taken from the server`);
    let read = 0;
    for await (const bytes of body) read += bytes.length;
    assert.equal(read, total);
  });

  test("closes its connection when the reader stops", async () => {
    await using server = await httpPeer((_, response) => {
      response.write("first");
    });
    const { body } = await request(server.url, { response_type: "stream" });
    for await (const bytes of body) {
      assert.equal(String(bytes), "first");
      break;
    }
    await server.idle();
  });

  test("has no limit on its length by default", async () => {
    await using server = await httpPeer((_, response) => response.end(Buffer.alloc(5000)));
    const { body } = await request(server.url, { response_type: "stream", max_body: 4999 });
    await failure("too-large", body.toArray());
  });
});

describe("cancelling", () => {
  test("by cancel() or a signal rejects with cancelled, and closes the connection", async () => {
    await using server = await httpPeer(() => {});
    for (const isSignal of [false, true]) {
      const controller = new AbortController();
      const pending = request(server.url, { signal: controller.signal });
      if (isSignal) controller.abort();
      else pending.cancel();
      await failure("cancelled", pending);
    }
    await failure("cancelled", request(server.url, { signal: AbortSignal.abort() }));
    await server.idle();
  });

  test("by AbortSignal.timeout rejects with timeout", async () => {
    await using server = await httpPeer(() => {});
    await failure("timeout", request(server.url, { signal: AbortSignal.timeout(50) }));
  });

  test("works while the body is arriving", async () => {
    await using server = await httpPeer((_, response) => {
      response.write("first");
    });
    const pending = request(server.url, { response_type: "stream" });
    const { body } = await pending;
    pending.cancel();
    await failure("cancelled", body.toArray());
    await server.idle();
  });

  test("leaves no listener on the signal", async () => {
    const { signal } = new AbortController();
    await request(peer.url, { signal });
    await new Promise(setImmediate);
    assert.equal(getEventListeners(signal, "abort").length, 0);
  });
});

describe("a callback", () => {
  test("gets body, code, response and request, and the promise also resolves to the response", async () => {
    const called = Promise.withResolvers<unknown[]>();
    const promise = request(peer.url, undefined, (...all) => called.resolve(all));
    const response = await promise;
    assert.deepEqual(await called.promise, [response.body, 200, response, response.request]);
  });

  test("gets the code of a failure, 0 and the error, and the promise then needs no handler", async () => {
    const unhandled: unknown[] = [];
    const note = (error: unknown) => unhandled.push(error);
    process.on("unhandledRejection", note);
    const called = Promise.withResolvers<unknown[]>();
    request("http://127.0.0.1:1/", undefined, (...all) => called.resolve(all));
    const [word, code, error] = await called.promise;
    await new Promise(setImmediate);
    process.off("unhandledRejection", note);
    assert.deepEqual([word, code, (error as RequestError).code], ["connection-refused", 0, "connection-refused"]);
    assert.deepEqual(unhandled, []);
  });

  test("gets the error of an invalid URL before the call returns", () => {
    let heard: unknown[] = [];
    request("nonsense", undefined, (...all) => {
      heard = all;
    });
    assert.deepEqual(heard.slice(0, 2), ["invalid-url", 0]);
  });

  test("that throws or rejects causes a warning", async () => {
    for (const callback of [
      () => {
        throw new Error("oops");
      },
      async () => Promise.reject(new Error("oops")),
    ]) {
      const warned = once(process, "warning");
      await request(peer.url, undefined, callback);
      assert.match((await warned)[0].message, /callback of a request failed: oops/);
    }
  });
});

describe("a request cannot be sent with", () => {
  test("an invalid URL, or one that is not HTTP, and passwords are not shown", async () => {
    for (const url of [
      "",
      "nonsense",
      "file:///etc/passwd",
      "ftp://u:secret@h/",
      "http://u:secret@h:x/",
      "//u:secret@h",
    ]) {
      const error = await failure("invalid-url", request(url));
      assert.doesNotMatch(JSON.stringify([error.message, error.url, String(error.cause)]), /secret/);
    }
  });

  test("an option that does not exist or has an invalid value", async () => {
    const wrong: [object, RegExp][] = [
      [{ timout: 1 }, /no option timout/],
      [{ timeout: -1 }, /timeout takes a number of seconds/],
      [{ method: "GET /" }, /method/],
      [{ method: "CONNECT" }, /method/],
      [{ body: 1 }, /body takes/],
      [{ response_type: "json" }, /response_type/],
      [{ signal: {} }, /signal/],
      [{ ca: 1 }, /ca takes PEM/],
    ];
    for (const [options, message] of wrong) {
      assert.match((await failure("invalid-request", request(peer.url, options))).message, message);
    }
  });

  test("a header with a line break, or one that belongs to the connection", async () => {
    for (const headers of [
      { x: "a\r\nb: c" },
      { "a b": "c" },
      { x: "✓" },
      { upgrade: "websocket" },
      { expect: "100-continue" },
    ]) {
      await failure("invalid-request", request(peer.url, { headers: headers as Record<string, string> }));
    }
  });
});

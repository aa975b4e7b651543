import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtemp, open, rm, symlink } from "node:fs/promises";
import { get, type IncomingMessage } from "node:http";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough, Readable } from "node:stream";
import { describe, test } from "node:test";
import type { HttpEvent, HttpFinishedEvent } from "#core/types.ts";
import { eventually } from "#test/support/eventually.ts";
import { TestService } from "#test/support/service.ts";

function fetchRaw(url: string): Promise<{ response: IncomingMessage; body: string }> {
  return new Promise((resolve, reject) => {
    get(url, { agent: false }, (response) => {
      let body = "";
      response.setEncoding("utf8");
      response.on("data", (chunk: string) => {
        body += chunk;
      });
      response.on("end", () => resolve({ response, body }));
      response.on("error", reject);
    }).on("error", reject);
  });
}

function signal(): { promise: Promise<void>; done: () => void } {
  const { promise, resolve } = Promise.withResolvers<void>();
  return { promise, done: resolve };
}

describe("an error that a handler throws after its response", () => {
  test("is logged when the response is complete", async () => {
    const thrown = signal();
    await using host = await TestService.start({
      route: {
        async "GET /"({ response }: HttpEvent) {
          response.send("all of it");
          await once(response.raw, "close");
          setImmediate(thrown.done);
          throw new Error("too late");
        },
      },
    });
    assert.equal((await fetchRaw(host.url("/app/"))).body, "all of it");
    await thrown.promise;
    assert.match(host.errors.join(), /too late/);
  });

  test("cuts a response that has begun, and replaces one that has not", async () => {
    const body = new PassThrough();
    const begun = signal();
    async function* endless() {
      yield "a";
      begun.done();
      await new Promise(() => undefined);
    }
    await using host = await TestService.start({
      route: {
        async "GET /begun"({ response }: HttpEvent) {
          response.send(endless());
          await begun.promise;
          throw new Error("in between");
        },
        async "GET /"({ response }: HttpEvent) {
          response.send(body);
          await Promise.resolve();
          throw new Error("before");
        },
      },
    });
    await assert.rejects(fetchRaw(host.url("/app/begun")));
    assert.match(host.errors.join(), /in between/);
    const { response } = await fetchRaw(host.url("/app/"));
    assert.equal(response.statusCode, 500);
    await eventually("the body is ended", () => body.destroyed);
    assert.match(host.errors.join(), /before/);
  });
});

describe("responses", () => {
  test("async iterables, Node streams and web streams are sent piece by piece", async () => {
    async function* pieces() {
      yield "one ";
      yield Buffer.from("two ");
      yield new TextEncoder().encode("three");
    }
    await using host = await TestService.start({
      route: {
        "GET /iterable": () => pieces(),
        "GET /node": () => Readable.from(["one ", "two ", "three"]),
        "GET /web": () => ReadableStream.from(pieces()) as ReadableStream,
        "GET /object": () => ({ status_code: 201, headers: { content_type: "text/plain" }, body: pieces() }),
      },
    });
    for (const path of ["iterable", "node", "web", "object"]) {
      const { response, body } = await fetchRaw(host.url(`/app/${path}`));
      assert.equal(body, "one two three", path);
      assert.equal(response.headers["transfer-encoding"], "chunked", path);
    }
  });

  test("a stream goes no faster than the client reads", async () => {
    let made = 0;
    async function* endless() {
      for (; made < 2000; made += 1) yield Buffer.alloc(64 * 1024);
    }
    await using host = await TestService.start({ route: { "GET /": () => endless() } });
    const socket = connect({ port: host.port, host: "127.0.0.1" });
    socket.write("GET /app/ HTTP/1.1\r\nHost: a\r\n\r\n");
    await new Promise((resolve) => socket.once("readable", resolve));
    await new Promise((resolve) => setTimeout(resolve, 200));
    assert.ok(made < 500, `${made} pieces of 64 KiB were made for a client that reads nothing`);
    socket.destroy();
  });

  test("a stream that never waits lets other requests run", async () => {
    const line = `${"x".repeat(79)}\n`;
    let made = 0;
    let madeAtTurn = 0;
    async function* lines() {
      setTimeout(() => {
        madeAtTurn = made;
      }, 50);
      for (; made < 40_000; made += 1) yield line;
    }
    await using host = await TestService.start({ route: { "GET /": () => lines() } });
    const { body } = await fetchRaw(host.url("/app/"));
    assert.equal(body.length, 40_000 * line.length);
    assert.ok(madeAtTurn > 0 && madeAtTurn < 20_000, `a timer of 50 ms fired after ${madeAtTurn} lines`);
  });

  test("a head, a short body in pieces and its end are sent in one write when they are available at once", async () => {
    async function* greeting() {
      yield "hello, ";
      yield "world";
    }
    await using host = await TestService.start({ route: { "GET /": () => greeting() } });
    const socket = connect({ port: host.port, host: "127.0.0.1" });
    socket.write("GET /app/ HTTP/1.1\r\nHost: a\r\n\r\n");
    const [first] = (await once(socket, "data")) as [Buffer];
    // Node.js 26 joins the pieces in one chunk.
    assert.match(
      first.toString(),
      /^HTTP\/1\.1 200 .*\r\n\r\n(7\r\nhello, \r\n5\r\nworld|c\r\nhello, world)\r\n0\r\n\r\n$/s,
    );
    socket.destroy();
  });

  test("a head does not wait long for a slow body", async () => {
    const { promise: requested, resolve: ask } = Promise.withResolvers<void>();
    async function* late() {
      await requested;
      yield "late";
    }
    await using host = await TestService.start({ route: { "GET /": () => late() } });
    const socket = connect({ port: host.port, host: "127.0.0.1" });
    socket.write("GET /app/ HTTP/1.1\r\nHost: a\r\n\r\n");
    const [head] = (await once(socket, "data")) as [Buffer];
    assert.match(head.toString(), /^HTTP\/1\.1 200 .*\r\n\r\n$/s);
    ask();
    const [rest] = (await once(socket, "data")) as [Buffer];
    assert.equal(rest.toString(), "4\r\nlate\r\n0\r\n\r\n");
    socket.destroy();
  });

  test("a stream that fails breaks the connection, so that nobody takes the part for the whole", async () => {
    await using host = await TestService.start({
      route: {
        "GET /": () =>
          (async function* () {
            yield "part";
            throw new Error("the source broke");
          })(),
      },
    });
    await assert.rejects(fetchRaw(host.url("/app/")), { code: "ECONNRESET" });
    assert.match(host.errors.join(), /the source broke/);
    assert.equal((await fetchRaw(host.url("/nowhere"))).response.statusCode, 404);
  });

  test("a handler is notified that its client left: by the signal, on_destroy and the stream", async () => {
    const heard = { signal: signal(), destroy: signal(), stream: signal() };
    await using host = await TestService.start({
      route: {
        "GET /wait": (event) => {
          event.request.signal.addEventListener("abort", () => heard.signal.done());
          event.response.on_destroy = () => {
            assert.equal(event.response.finished, true);
            heard.destroy.done();
          };
          return true;
        },
        "GET /stream": () =>
          (async function* () {
            try {
              for (;;) yield Buffer.alloc(64 * 1024);
            } finally {
              heard.stream.done();
            }
          })(),
      },
    });
    for (const path of ["wait", "stream"]) {
      const socket = connect({ port: host.port, host: "127.0.0.1" });
      socket.on("error", () => undefined);
      socket.write(`GET /app/${path} HTTP/1.1\r\nHost: a\r\n\r\n`);
      setTimeout(() => socket.destroy(), 50);
    }
    await Promise.all([heard.signal.promise, heard.destroy.promise, heard.stream.promise]);
  });

  test("on_destroy is called once after a complete response, and the signal is not aborted", async () => {
    let destroyed = 0;
    let aborted = false;
    await using host = await TestService.start({
      route: {
        "GET /": (event) => {
          event.request.signal.addEventListener("abort", () => {
            aborted = true;
          });
          event.response.on_destroy = () => {
            destroyed += 1;
          };
          return "x";
        },
      },
    });
    const finished = signal();
    host.hook("http-finished", () => finished.done());
    await fetchRaw(host.url("/app/"));
    await finished.promise;
    assert.deepEqual([destroyed, aborted], [1, false]);
  });

  test("a second send and a value after sending are ignored", async () => {
    await using host = await TestService.start({
      route: {
        "GET /": (event) => {
          event.response.send("first");
          event.response.send("second");
          return "third";
        },
        "GET /*": () => "wildcard",
      },
    });
    assert.equal((await fetchRaw(host.url("/app/"))).body, "first");
  });

  test("a header that could split the response is refused with a 500, and is not sent", async () => {
    await using host = await TestService.start({
      route: {
        "GET /": (event) => {
          event.response.headers.location = "/x\r\nSet-Cookie: stolen=1";
          return 302;
        },
      },
    });
    const { response } = await fetchRaw(host.url("/app/"));
    assert.equal(response.statusCode, 500);
    assert.equal(response.headers["set-cookie"], undefined);
    assert.match(host.errors.join(), /Location cannot be sent/);
  });

  test("send_file sends a path with its length, a stream and an open file, and gets 404 without a file", async (t) => {
    const path = new URL(import.meta.url).pathname;
    const folder = await mkdtemp(join(tmpdir(), "modhost-send-file-"));
    t.after(() => rm(folder, { recursive: true }));
    const loop = join(folder, "loop");
    await symlink(loop, loop);
    await using host = await TestService.start({
      route: {
        "GET /path": (event) => event.response.send_file(path),
        "GET /stream": (event) => event.response.send_file(Readable.from(["streamed"])),
        "GET /handle": async (event) => event.response.send_file(await open(path)),
        "GET /missing": (event) => event.response.send_file("/does/not/exist"),
        "GET /nul": (event) => event.response.send_file(`${path}\0`),
        "GET /loop": (event) => event.response.send_file(loop),
      },
    });
    const whole = await fetchRaw(host.url("/app/path"));
    assert.equal(Number(whole.response.headers["content-length"]), Buffer.byteLength(whole.body));
    assert.match(whole.body, /send_file sends a path/);
    assert.equal((await fetchRaw(host.url("/app/stream"))).body, "streamed");
    assert.equal((await fetchRaw(host.url("/app/handle"))).body, whole.body);
    for (const name of ["missing", "nul", "loop"]) {
      assert.equal((await fetchRaw(host.url(`/app/${name}`))).response.statusCode, 404, name);
    }
    assert.deepEqual(host.errors, []);
    const range = await fetch(host.url("/app/path"), { headers: { Range: "bytes=0-5" } });
    assert.deepEqual([range.status, await range.text()], [206, "import"]);
  });

  test("the host reports the outcome of each request", async () => {
    await using host = await TestService.start({ route: { "GET /": () => "hello", "GET /bad": () => 503 } });
    const events: HttpFinishedEvent[] = [];
    const three = signal();
    host.hook("http-finished", (event: HttpFinishedEvent) => {
      if (events.push(event) === 3) three.done();
    });
    for (const path of ["/app/", "/app/bad", "/nowhere"]) await fetchRaw(host.url(path));
    await three.promise;
    assert.deepEqual(
      events.map(({ status, app, complete }) => [status, app, complete]),
      [
        [200, "app", true],
        [503, "app", true],
        [404, undefined, true],
      ],
    );
    assert.equal(events[0]?.bytes, 5);
    assert.ok((events[0]?.duration ?? -1) >= 0);
    assert.equal(new Set(events.map((event) => event.request.id)).size, 3);
  });

  test("a client that does not read is cut off, and the handler is notified", async () => {
    const gone = signal();
    await using host = await TestService.start(
      {
        route: {
          "GET /": (event: HttpEvent) => {
            event.response.on_destroy = () => gone.done();
            return Buffer.alloc(64 * 1024 * 1024);
          },
        },
      },
      { progressTimeout: 0.3 },
    );
    const socket = connect({ port: host.port, host: "127.0.0.1" });
    socket.on("error", () => undefined);
    socket.pause();
    socket.write("GET /app/ HTTP/1.1\r\nHost: a\r\n\r\n");
    await gone.promise;
    socket.destroy();
  });

  test("requests in progress end before their app is gone, or are cut", async () => {
    const entered = signal();
    let finish = () => {};
    await using host = await TestService.start({
      route: {
        "GET /slow": () =>
          new Promise<string>((resolve) => {
            finish = () => resolve("done");
            entered.done();
          }),
        "GET /never": () => {
          entered.done();
          return true;
        },
      },
    });
    const reply = fetchRaw(host.url("/app/slow"));
    await entered.promise;
    host.service.unmount(host.mount);
    let retired = false;
    const retiring = host.mount.retire(5).then(() => {
      retired = true;
    });
    assert.equal((await fetchRaw(host.url("/app/slow"))).response.statusCode, 404);
    assert.equal(retired, false);
    finish();
    assert.equal((await reply).body, "done");
    await retiring;

    host.mount.retired = false;
    host.service.mount(host.mount);
    const hanging = fetchRaw(host.url("/app/never"));
    hanging.catch(() => undefined);
    await entered.promise;
    await eventually("the request has begun", () => host.mount.active.size > 0, { every: 5 });
    await host.mount.retire(0.05);
    await assert.rejects(hanging);
  });
});

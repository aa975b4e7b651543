import assert from "node:assert/strict";
import { once } from "node:events";
import { request as httpRequest } from "node:http";
import { connect } from "node:net";
import { Readable } from "node:stream";
import { describe, test } from "node:test";
import { format } from "node:util";
import type { HttpErrorEvent, HttpEvent } from "#core/types.ts";
import { eventually } from "#test/support/eventually.ts";
import { TestService } from "#test/support/service.ts";

/** Sends a request head and leaves as soon as the handler runs. */
async function leaveEarly(port: number, path: string, entered: Promise<void>): Promise<void> {
  const socket = connect({ port, host: "127.0.0.1" });
  socket.on("error", () => undefined);
  socket.write(`GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`);
  await entered;
  socket.destroy();
}

async function raw(port: number, text: string): Promise<string> {
  const socket = connect({ port, host: "127.0.0.1" });
  socket.write(text);
  let reply = "";
  for await (const chunk of socket) reply += chunk;
  return reply;
}

describe("careless handlers, hooks and clients do not break the server", () => {
  test("a stream that is returned after the client left is destroyed", async () => {
    const entered = Promise.withResolvers<void>();
    const left = Promise.withResolvers<void>();
    const stream = Readable.from(["never sent"]);
    await using host = await TestService.start({
      route: {
        "GET /late": async (event) => {
          event.response.on_destroy = () => left.resolve();
          entered.resolve();
          await left.promise;
          setImmediate(() => stream.destroy(new Error("nobody is to hear this")));
          return stream;
        },
      },
    });
    await leaveEarly(host.port, "/app/late", entered.promise);
    await once(stream, "close");
    assert.equal(stream.destroyed, true);
  });

  test("a generator whose client left before its start is never started", async () => {
    let began = false;
    const entered = Promise.withResolvers<void>();
    const settled = Promise.withResolvers<void>();
    await using host = await TestService.start({
      route: {
        "GET /": async (event) => {
          const gone = new Promise<void>((resolve) => {
            event.response.on_destroy = resolve;
          });
          entered.resolve();
          await gone;
          setImmediate(() => settled.resolve());
          return (async function* () {
            began = true;
            yield "x";
          })();
        },
      },
    });
    await leaveEarly(host.port, "/app/", entered.promise);
    await settled.promise;
    assert.equal(began, false);
  });

  test("hooks that throw, reject or return nothing stop neither the request nor each other", async () => {
    const heard = Promise.withResolvers<void>();
    await using host = await TestService.start({ route: { "GET /": () => 500 } });
    host.hook("http-finished", () => {
      throw new Error("first");
    });
    host.hook("http-finished", async () => Promise.reject(new Error("second")));
    host.hook("http-finished", async () => "an answer");
    host.hook("http-finished", () => heard.resolve());
    host.hook("http-error", async () => undefined);
    host.hook("http-error", async ({ code }: HttpErrorEvent) => `page of ${code}`);
    const response = await fetch(host.url("/app/"));
    assert.deepEqual([response.status, await response.text()], [500, "page of 500"]);
    await heard.promise;
    assert.match(host.errors.join(), /first.*second/s);
  });

  test("a malformed request gets a response whatever the hooks for its page do", async () => {
    await using host = await TestService.start({ route: {} });
    const garbage = "GARBAGE\r\n\r\n";
    host.hook("http-error", async (event: HttpErrorEvent) => {
      if (event.request === undefined) throw new Error("no request");
      return "fine";
    });
    assert.match(await raw(host.port, garbage), /^HTTP\/1\.1 400 .*400 Bad Request/s);
    await using other = await TestService.start({ route: {} });
    other.hook("http-error", (event: HttpErrorEvent) => {
      event.response.headers.x_bad = "a\nb";
      return "page";
    });
    assert.match(await raw(other.port, garbage), /^HTTP\/1\.1 400 .*\r\n\r\npage$/s, "without that header");
  });

  test("garbage after a request is refused once, after the response, however many pieces it arrives in", async () => {
    const warnings: Error[] = [];
    const warn = (warning: Error) => void warnings.push(warning);
    process.on("warning", warn);
    const release = Promise.withResolvers<string>();
    await using host = await TestService.start({ route: { "GET /": () => release.promise } });
    const socket = connect({ port: host.port, host: "127.0.0.1", noDelay: true });
    socket.on("error", () => undefined);
    socket.write("GET /app/ HTTP/1.1\r\nHost: a\r\n\r\n");
    await eventually("the request has begun", () => host.mount.active.size > 0, { every: 2 });
    for (let piece = 0; piece < 20; piece += 1) {
      socket.write("\u0000garbage\r\n\r\n");
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
    release.resolve("answered");
    let text = "";
    for await (const chunk of socket) text += chunk;
    process.off("warning", warn);
    assert.deepEqual(text.match(/HTTP\/1\.1 \d+/g), ["HTTP/1.1 200", "HTTP/1.1 400"]);
    assert.deepEqual(warnings, []);
  });

  test("trailers that fail break only their own response", async () => {
    await using host = await TestService.start({
      route: {
        "GET /throws": (event) => {
          event.response.trailer_names = ["x"];
          event.response.trailers = () => {
            throw new Error("no trailers");
          };
          return Readable.from(["body"]);
        },
        "GET /": () => "alive",
      },
    });
    await assert.rejects(fetch(host.url("/app/throws")).then((response) => response.text()));
    assert.match(host.errors.join(), /no trailers/);
    assert.equal(await (await fetch(host.url("/app/"))).text(), "alive");
  });

  test("an object from a client that is returned unchanged sets only the fields of a response", async () => {
    await using host = await TestService.start({
      route: { "POST /": (event: HttpEvent) => JSON.parse(event.request.body) },
    });
    const post = (body: object) => fetch(host.url("/app/"), { method: "POST", body: JSON.stringify(body) });
    for (const field of ["raw", "answered", "write", "on_destroy", "send"]) {
      assert.equal((await post({ [field]: 1, status_code: 201 })).status, 201, field);
    }
  });

  test("an on_destroy that fails is logged", async () => {
    const over = Promise.withResolvers<void>();
    await using host = await TestService.start({
      route: {
        "GET /": (event) => {
          event.response.on_destroy = (async () => {
            setImmediate(() => over.resolve());
            throw new Error("not cleaned");
          }) as () => void;
          return "x";
        },
      },
    });
    await (await fetch(host.url("/app/"))).text();
    await over.promise;
    assert.match(host.errors.join(), /GET \/app\/ .*failed in on_destroy.*not cleaned/s);
  });

  test("an announced length is enforced: a longer or shorter stream breaks the connection", async () => {
    await using host = await TestService.start({
      route: {
        "GET /long": () => ({ headers: { content_length: 2 }, body: Readable.from(["ab", "HTTP/1.1 200 INJECTED"]) }),
        "GET /short": () => ({ headers: { content_length: 20 }, body: Readable.from(["ab"]) }),
      },
    });
    const long = await raw(host.port, "GET /app/long HTTP/1.1\r\nHost: a\r\n\r\n");
    assert.ok(!long.includes("INJECTED"));
    assert.match(await raw(host.port, "GET /app/short HTTP/1.1\r\nHost: a\r\n\r\n"), /\r\n\r\nab$/);
  });

  test("a handler cannot frame the body itself", async () => {
    await using host = await TestService.start({
      route: { "GET /": () => ({ headers: { transfer_encoding: "chunked", content_length: 99 }, body: "abc" }) },
    });
    const reply = await raw(host.port, "GET /app/ HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    assert.match(reply, /Content-Length: 3\r\n/);
    assert.doesNotMatch(reply, /Transfer-Encoding/);
  });

  test("an invalid Host gets 400, also when any host is served", async () => {
    await using host = await TestService.start({ route: { "GET /": () => "x" } });
    for (const line of ["Host: a b", "Host:", "Host: a/b?@x", "Host: a, b"]) {
      assert.match(
        await raw(host.port, `GET /app/ HTTP/1.1\r\n${line}\r\nConnection: close\r\n\r\n`),
        /^HTTP\/1\.1 400 /,
        line,
      );
    }
    assert.match(await raw(host.port, "GET http://a/app/ HTTP/1.1\r\nConnection: close\r\n\r\n"), /^HTTP\/1\.1 400 /);
  });

  test("the first read of a streaming handler sends 100 Continue to a client that waits for it", async () => {
    await using host = await TestService.start({
      streaming_uploads: true,
      route: {
        "POST /": async (event: HttpEvent) => {
          let bytes = 0;
          for await (const chunk of event.request.body_stream) bytes += chunk.length;
          return `${bytes}`;
        },
      },
    });
    const headers = { Expect: "100-continue", "Content-Length": 5 };
    const request = httpRequest({ port: host.port, method: "POST", path: "/app/", headers });
    request.flushHeaders();
    await once(request, "continue");
    request.end("hello");
    const [response] = await once(request, "response");
    let text = "";
    for await (const chunk of response) text += chunk;
    assert.equal(text, "5");
  });

  test("a body with a content coding gets 415 also for streaming handlers", async () => {
    await using host = await TestService.start({ streaming_uploads: true, route: { "POST /": () => "read" } });
    const response = await fetch(host.url("/app/"), {
      method: "POST",
      body: "x",
      headers: { "Content-Encoding": "gzip" },
    });
    assert.equal(response.status, 415);
  });

  test("a request whose body is still arriving when its module leaves gets that module's response", async () => {
    await using host = await TestService.start({ route: { "POST /": (event: HttpEvent) => event.request.body } });
    const socket = connect({ port: host.port, host: "127.0.0.1" });
    socket.write("POST /app/ HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhe");
    await eventually("the request has begun", () => host.mount.active.size > 0, { every: 2 });
    host.service.unmount(host.mount);
    const retired = host.mount.retire(5);
    socket.write("llo");
    let reply = "";
    for await (const chunk of socket) reply += chunk;
    assert.match(reply, /^HTTP\/1\.1 200 .*hello$/s);
    await retired;
  });

  test("a stopping server responds 503 for apps that are gone, and closes the connection", async () => {
    await using host = await TestService.start({ route: { "GET /": () => "x" } });
    host.service.unmount(host.mount);
    host.service.stopping = true;
    const reply = await raw(host.port, "GET /app/ HTTP/1.1\r\nHost: a\r\n\r\n");
    assert.match(reply, /^HTTP\/1\.1 503 .*Connection: close/s);
  });
});

test("timeouts may be fractions of a second", async () => {
  const timeouts = { headTimeout: 1.2345, idleTimeout: 0.12345, progressTimeout: 1.00001 };
  await using service = await TestService.start({ route: { "GET /": () => "here" } }, timeouts);
  assert.equal(await (await fetch(service.url("/app"))).text(), "here");
});

test("a request that outlives the grace period is named once, whoever cuts it", async () => {
  for (const first of ["app", "service"]) {
    const begun = Promise.withResolvers<void>();
    const never = () => {
      begun.resolve();
      return new Promise<string>(() => undefined);
    };
    await using running = await TestService.start({ route: { "GET /never": never } });
    const reported: string[] = [];
    Object.assign(running.service.environment.log, {
      warn: (text: string, ...args: unknown[]) => reported.push(format(text, ...args)),
    });
    const requested = fetch(running.url("/app/never")).catch(() => undefined);
    await begun.promise;
    const ends = [() => running.mount.retire(0.05), () => running.service.close(0.05)];
    await Promise.all((first === "app" ? ends : ends.reverse()).map((end) => end()));
    await requested;
    assert.match(
      reported.join("\n"),
      /^Cut off requests that had not ended after 0\.05 s: GET \/app\/never \(\d+ s\)$/,
    );
  }
});

test("a response that is completed while the error page is made does not mix with that page", async () => {
  const reported = Promise.withResolvers<void>();
  const made = Promise.withResolvers<void>();
  let isServed = false;
  const slow = async function* () {
    isServed = true;
    yield "first";
    await made.promise;
    yield "last";
  };
  await using host = await TestService.start({ route: { "GET /slow": () => slow() } }, { headTimeout: 0.2 });
  host.hook("http-error", async () => {
    reported.resolve();
    await made.promise;
    return "too late";
  });
  const socket = connect({ port: host.port, host: "127.0.0.1" });
  let received = "";
  const ended = new Promise((over) => socket.on("close", over));
  socket.on("error", () => undefined).on("data", (piece) => void (received += piece));
  socket.write("GET /app/slow HTTP/1.1\r\nHost: a\r\n");
  await reported.promise;
  socket.write("\r\n");
  for (let turn = 0; turn < 50 && !isServed; turn += 1) await new Promise((next) => setTimeout(next, 2));
  made.resolve();
  await ended;
  assert.match(received, /^HTTP\/1.1 408 [\s\S]*too late$/);
  assert.equal(received.split("HTTP/1.1").length, 2);
});

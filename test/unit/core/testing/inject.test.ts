import assert from "node:assert/strict";
import { once } from "node:events";
import { Readable } from "node:stream";
import { describe, type TestContext, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { createTestHost, type InjectedRequest, type TestHostOptions } from "#core/testing/index.ts";
import type { HttpEvent, HttpProvider, Module } from "#core/types.ts";

const encode = (text: string) => new TextEncoder().encode(text);

async function appOf(t: TestContext, app: HttpProvider, options: TestHostOptions = {}) {
  const load = (module: Module) => {
    module.depends("http");
    module.provides("http", app);
  };
  const modules = [{ name: "app", load }, ...(options.modules ?? [])];
  const host = await createTestHost({ listen: false, ...options, modules });
  t.after(() => host.stop());
  return host;
}

describe("an injected request", () => {
  test("passes through the whole host although no port is open", async (t) => {
    const host = await appOf(
      t,
      {
        route: {
          "GET /": ({ response }) => {
            response.headers.x_own = "1";
            return "hello";
          },
          "GET /broken": () => {
            throw new Error("secret");
          },
        },
      },
      { config: { modules_enabled: ["http", "http_errors"], http_max_content_size: 10 } },
    );
    assert.deepEqual(host.host.listening(), []);
    const injected = await host.inject("/app/");
    assert.deepEqual([injected.status, injected.body, injected.headers["x-own"]], [200, "hello", "1"]);
    assert.equal(injected.headers["content-length"], "5");
    assert.deepEqual(injected.bytes(), Buffer.from("hello"));

    const redirect = await host.inject("/app");
    assert.deepEqual([redirect.status, redirect.headers.location], [301, "/app/"]);
    assert.equal((await host.inject({ method: "DELETE", path: "/app/" })).headers.allow, "GET, HEAD, OPTIONS");
    assert.equal((await host.inject({ method: "HEAD", path: "/app/" })).body, "");
    assert.match((await host.inject("/nowhere")).body, /<!doctype html>/i);
    assert.equal((await host.inject({ path: "/app/", headers: { host: undefined } })).status, 400);
    assert.equal((await host.inject({ path: "/app/", headers: { long: "x".repeat(70_000) } })).status, 431);

    const broken = await host.inject("/app/broken");
    assert.equal(broken.status, 500);
    assert.doesNotMatch(broken.body, /secret/);
    const [logged] = host.logged("error");
    assert.equal(logged?.module, "app");
    assert.match(logged?.msg ?? "", /secret/);
  });

  test("has its method, target, headers, host and caller in the handler", async (t) => {
    const host = await appOf(t, {
      route: {
        "PUT /*": ({ request }, rest) => ({
          headers: { content_type: "application/json" },
          body: JSON.stringify({
            rest,
            query: request.url.query,
            raw: request.url.raw_path,
            two: request.headers.x_two,
            host: request.headers.host,
            ip: request.ip,
            secure: request.secure,
            ssl: request.conn.ssl(),
            ports: [request.conn.serverport(), request.conn.clientport() > 0],
          }),
        }),
      },
    });
    const send = async (request: InjectedRequest) =>
      (await host.inject({ method: "PUT", ...request })).json<Record<string, unknown>>();

    assert.deepEqual(await send({ path: "/app/a%20b?c=d", headers: { x_two: ["1", "2"] } }), {
      rest: "a b",
      query: "c=d",
      raw: "/app/a%20b",
      two: "1, 2",
      host: "localhost",
      ip: "127.0.0.1",
      secure: false,
      ssl: false,
      ports: [80, true],
    });
    const far = await send({ path: "/app/x", host: "a.example", secure: true, remote_address: "2001:db8::7" });
    assert.deepEqual(
      [far.host, far.ip, far.secure, far.ssl, far.ports],
      ["a.example", "2001:db8::7", true, true, [443, true]],
    );
    const byUrl = await send({ url: "https://b.example:8443/app/ö?q" });
    assert.deepEqual([byUrl.host, byUrl.secure, byUrl.raw, byUrl.rest], ["b.example:8443", true, "/app/%C3%B6", "ö"]);
  });

  test("can have text, bytes, forms, streams and async iterables as its body, with any method", async (t) => {
    const host = await appOf(t, {
      route: Object.fromEntries(
        ["POST", "DELETE", "GET"].map((method) => [
          `${method} /`,
          ({ request }: HttpEvent) =>
            `${request.headers.content_length ?? request.headers.transfer_encoding} ${request.headers.content_type} ${request.body}`,
        ]),
      ) as HttpProvider["route"],
    });
    const send = async (body: InjectedRequest["body"], request: InjectedRequest = {}) =>
      (await host.inject({ method: "POST", path: "/app/", body, ...request })).body;
    async function* pieces() {
      yield "ab";
      yield encode("cd");
    }
    assert.equal(await send("äb"), "3 undefined äb");
    assert.equal(await send(encode("xyz"), { headers: { content_type: "a/b" } }), "3 a/b xyz");
    assert.equal(await send("xyz", { method: "DELETE" }), "3 undefined xyz");
    assert.equal(await send("xyz", { method: "GET" }), "3 undefined xyz");
    assert.equal(await send(pieces()), "chunked undefined abcd");
    assert.equal(await send(pieces(), { headers: { "Content-Length": "4" } }), "4 undefined abcd");
    assert.equal(await send(Readable.from(["12", "34"])), "chunked undefined 1234");
    assert.equal(
      await send(new URLSearchParams({ a: "b c" })),
      "5 application/x-www-form-urlencoded;charset=UTF-8 a=b+c",
    );
    const form = new FormData();
    form.append("file", new Blob(["content"]), "a.txt");
    assert.match(await send(form), /multipart\/form-data; boundary=.*filename="a\.txt".*content/s);
  });

  test("is subject to the limits: 413 for a body that is too large, however it is sent", async (t) => {
    const host = await appOf(t, { route: { "POST /": () => "in" } }, { config: { http_max_content_size: 1000 } });
    async function* endless() {
      for (;;) yield "x".repeat(500);
    }
    assert.equal((await host.inject({ method: "POST", path: "/app/", body: "x".repeat(1001) })).status, 413);
    assert.equal((await host.inject({ method: "POST", path: "/app/", body: endless() })).status, 413);
    assert.equal((await host.inject({ method: "POST", path: "/app/", body: "x".repeat(1000) })).body, "in");
  });

  test("returns large responses completely, with their trailers", async (t) => {
    const block = Buffer.alloc(100_000, 7);
    const host = await appOf(t, {
      route: {
        "GET /": async function* () {
          for (let count = 0; count < 50; count += 1) yield block;
        } as never,
        "GET /trailed": { body: "text", trailers: { x_sum: "abc" } },
      },
    });
    const large = await host.inject("/app/");
    assert.equal(large.bytes().length, 5_000_000);
    assert.ok(large.bytes().every((byte) => byte === 7));
    const trailed = await host.inject("/app/trailed");
    assert.deepEqual([trailed.body, trailed.trailers["x-sum"]], ["text", "abc"]);
  });

  test("has ended for the host when its response is returned", async (t) => {
    const finished: unknown[] = [];
    const watcher = (module: Module) =>
      module.hook("http-finished", ({ complete, bytes }) => void finished.push([complete, bytes]));
    const host = await appOf(t, { route: { "GET /": "x" } }, { modules: [watcher] });
    await host.inject("/app/");
    assert.deepEqual(finished, [[true, 1]]);
    await host.unload("app");
    assert.equal((await host.inject("/app/")).status, 404);
  });

  test("fails with an error that names it if the host breaks the connection", async (t) => {
    const host = await appOf(t, {
      route: {
        "GET /early": ({ request }) => {
          request.conn.close();
          return true;
        },
        "GET /late": async function* () {
          yield "some";
          // A request that fails at once may fail before anything is sent.
          await sleep(20);
          throw new Error("no more");
        } as never,
      },
    });
    await assert.rejects(host.inject("/app/early"), { message: /^GET \/app\/early: .* before the response began$/ });
    await assert.rejects(host.inject("/app/late"), {
      message: /^GET \/app\/late: .* before the response was complete$/,
    });
  });

  test("fails with the error of its own body, and with the reason of its signal", async (t) => {
    const arrived = Promise.withResolvers<AbortSignal>();
    const host = await appOf(t, {
      route: {
        "POST /": "never",
        "GET /slow": ({ request }) => {
          arrived.resolve(request.signal);
          return true;
        },
      },
    });
    async function* failing() {
      yield "x";
      throw new RangeError("own");
    }
    await assert.rejects(host.inject({ method: "POST", path: "/app/", body: failing() }), { message: "own" });
    const leaving = new AbortController();
    const response = host.inject({ path: "/app/slow", signal: leaving.signal });
    const signal = await arrived.promise;
    const noticed = once(signal, "abort");
    leaving.abort(new Error("leaving"));
    await assert.rejects(response, { message: "leaving" });
    await noticed;
  });

  test("fails with the name of the missing service if no module serves HTTP", async (t) => {
    const host = await createTestHost();
    t.after(() => host.stop());
    await assert.rejects(host.inject("/"), { code: "SERVICE_MISSING", message: /service http/ });
  });
});

describe("a streamed response", () => {
  test("begins before it ends, and makes the handler wait while nobody reads", async (t) => {
    let given = 0;
    const ended = Promise.withResolvers<void>();
    const host = await appOf(t, {
      route: {
        "GET /": async function* () {
          try {
            for (;;) {
              given += 1;
              yield Buffer.alloc(50_000);
            }
          } finally {
            ended.resolve();
          }
        } as never,
      },
    });
    await using response = await host.stream("/app/");
    assert.equal(response.status, 200);
    const [first] = (await once(response.body, "data")) as [Buffer];
    assert.ok(first.length > 0);
    response.body.pause();
    let before = -1;
    while (before !== given) {
      before = given;
      for (let turn = 0; turn < 50; turn += 1) await new Promise(setImmediate);
    }
    assert.ok(given < 40, `${given} pieces were asked for`);
    await response.close();
    await ended.promise;
  });

  test("can be sent and received at the same time", async (t) => {
    const host = await appOf(t, {
      streaming_uploads: true,
      route: { "POST /": (event) => event.request.body_stream },
    });
    const questions: PromiseWithResolvers<string>[] = [Promise.withResolvers(), Promise.withResolvers()];
    async function* body() {
      for (const question of questions) yield await question.promise;
    }
    questions[0]?.resolve("one");
    await using response = await host.stream({ method: "POST", path: "/app/", body: body() });
    const pieces = response.body[Symbol.asyncIterator]();
    assert.equal(String((await pieces.next()).value), "one");
    questions[1]?.resolve("two");
    assert.equal(String((await pieces.next()).value), "two");
    assert.equal((await pieces.next()).done, true);
  });
});

test("connect returns a connection for other protocols", async (t) => {
  const host = await appOf(t, { route: { "GET /": "x" } });
  const socket = host.connect({ remote_address: "192.0.2.1" });
  socket.end("GARBAGE\r\n\r\n");
  assert.match(Buffer.concat(await socket.toArray()).toString(), /^HTTP\/1\.1 400 /);
});

test("requests that are pending when the host stops get their responses first", async () => {
  const gate = Promise.withResolvers<string>();
  const arrived = Promise.withResolvers<void>();
  const host = await createTestHost({
    listen: false,
    modules: [
      {
        name: "app",
        load(module) {
          module.depends("http");
          const handler = () => {
            arrived.resolve();
            return gate.promise;
          };
          module.provides("http", { route: { "GET /": handler } });
        },
      },
    ],
  });
  const response = host.inject("/app/");
  await arrived.promise;
  const stopped = host.stop();
  gate.resolve("late");
  assert.equal((await response).body, "late");
  await stopped;
});

/** Server-sent events: their form on the wire, and the ways in which a stream ends. */
import assert from "node:assert/strict";
import { EventEmitter, once } from "node:events";
import { afterEach, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { Agent, EventSource, request } from "undici";
import { event_stream } from "#core/http/index.ts";
import { EventBody } from "#core/http/sse/body.ts";
import type { EventStream, HttpEvent, HttpProvider, ServerEvent } from "#core/types.ts";
import { serving, startHost, type TestHost, withHost } from "#test/support/host.ts";
import { RawConnection } from "#test/support/raw.ts";
import { type Client, overEach, transports } from "#test/support/transports.ts";

/** Reports of the modules in these tests. */
const reported = new EventEmitter();
const streams = new Set<EventStream>();

const agents: Agent[] = [];
afterEach(async () => {
  for (const agent of agents.splice(0)) await agent.destroy();
});

/** A response that is read as it arrives. */
async function open(host: TestHost, name: Client["name"], path: string, headers: Record<string, string> = {}) {
  const agent = new Agent({ allowH2: name === "HTTP/2", connect: { rejectUnauthorized: false } });
  agents.push(agent);
  const origin = name === "HTTP/1.1" ? `http://127.0.0.1:${host.http}` : `https://127.0.0.1:${host.https}`;
  const received = await request(`${origin}${path}`, { dispatcher: agent, headers });
  received.body.on("error", () => undefined).setEncoding("utf8");
  return { ...received, blocks: blocks(received.body), leave: () => agent.destroy() };
}

/** The blocks of a stream as lists of lines: events and comments. */
async function* blocks(body: AsyncIterable<string>): AsyncGenerator<string[], undefined> {
  let text = "";
  for await (const piece of body) {
    text += piece;
    for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
      yield text.slice(0, end).split("\n");
      text = text.slice(end + 2);
    }
  }
  assert.equal(text, "", "the stream ends with a whole event");
}

async function take(from: AsyncIterator<string[]>, count: number): Promise<string[][]> {
  const taken: string[][] = [];
  while (taken.length < count) taken.push((await from.next()).value ?? assert.fail("the stream ended"));
  return taken;
}

const provider: HttpProvider = {
  route: {
    async "GET /three"(event) {
      const stream = event_stream(event, { retry: 1500 });
      await stream.send("hello");
      await stream.send({ event: "tick", id: "7", data: "one\ntwo\r\nthree\rfour\n" });
      await stream.comment("a\nb");
      await stream.send({ event: "bare" });
      await stream.send({ id: "8", retry: 10 });
      stream.close();
    },
    "GET /list": () => event_stream(events()),
    "GET /fails": () => event_stream(failing()),
    "GET /open": (event) => keep(event_stream(event, { heartbeat: 0 })),
    "GET /beat": (event) => keep(event_stream(event, { heartbeat: 0.02 })),
    "GET /rare": (event) => keep(event_stream(event, { heartbeat: 1e9 })),
    "GET /seen": (event) => {
      const stream = event_stream(event);
      void stream.send(stream.last_event_id ?? "nothing");
      stream.close();
    },
    "GET /endless": async (event) => {
      const stream = event_stream(event);
      try {
        for (let number = 0; ; number += 1) {
          await stream.send({ id: String(number), data: String(number) });
          await sleep(1, undefined, { signal: stream.signal });
        }
      } finally {
        reported.emit("ended");
      }
    },
    "GET /firehose": async (event) => {
      const stream = event_stream(event);
      stream.signal.addEventListener("abort", () => reported.emit("cut"));
      const data = "x".repeat(64 * 1024);
      for (let sent = 1; ; sent += 1) {
        await stream.send(data);
        reported.emit("flushed", sent);
      }
    },
    "GET /flood": (event) => {
      const stream = event_stream(event, { max_queue_bytes: 256 * 1024 });
      const data = "x".repeat(64 * 1024);
      // The kernel accepts some megabytes before anything waits.
      const sent = Array.from({ length: 1000 }, () => stream.send(data));
      // Reports the first event that is refused.
      Promise.all(sent).catch((error: Error) => reported.emit("refused", error));
      return true;
    },
    "GET /poll": async (event) => {
      reported.emit("polled");
      await sleep(60_000, undefined, { signal: event.request.leaving });
    },
    "GET /wrong": (event) => {
      const stream = event_stream(event);
      stream.close();
      const refused: string[] = [];
      for (const wrong of [{ event: "a\nb" }, { id: "a\r" }, { id: "\0" }, { retry: -1 }, { data: 3 }]) {
        assert.throws(
          () => void stream.send(wrong as ServerEvent),
          (error: Error) => refused.push(error.message) > 0 && error instanceof TypeError,
        );
      }
      reported.emit("refused", refused);
    },
  },
};

function keep(stream: EventStream): true {
  streams.add(stream);
  stream.signal.addEventListener("abort", () => streams.delete(stream) && reported.emit("gone"));
  reported.emit("open", stream);
  return true;
}

async function* events(): AsyncGenerator<ServerEvent | string> {
  try {
    yield "one";
    yield { event: "two", data: "2" };
  } finally {
    reported.emit("returned");
  }
}

async function* failing(): AsyncGenerator<string> {
  yield "one";
  throw new Error("no more events");
}

const host = withHost({
  config: { http_progress_timeout: 0.3 },
  modules: {
    mod_sse: serving(provider),
    mod_koa: serving({
      middleware({ state, path }) {
        if (path === "/x") event_stream((state as { event: HttpEvent }).event).close();
      },
    }),
  },
});

describe("an event stream", () => {
  overEach(host, "sends events as browsers read them", async (client) => {
    const received = await open(host(), client.name, "/sse/three");
    assert.equal(received.statusCode, 200);
    assert.deepEqual(
      [received.headers["content-type"], received.headers["cache-control"], received.headers["x-accel-buffering"]],
      ["text/event-stream", "no-store", "no"],
    );
    assert.deepEqual(await Array.fromAsync(received.blocks), [
      ["retry: 1500"],
      ["data: hello"],
      ["event: tick", "id: 7", "data: one", "data: two", "data: three", "data: four", "data: "],
      [": a", ": b"],
      ["event: bare", "data: "],
      ["id: 8", "retry: 10"],
    ]);
  });

  overEach(host, "is made of an async iterable, too", async (client) => {
    const returned = once(reported, "returned");
    assert.equal(await client.text("/sse/list"), "data: one\n\nevent: two\ndata: 2\n\n");
    await returned;
  });

  overEach(host, "arrives piece by piece", async (client) => {
    const opened = once(reported, "open") as Promise<[EventStream]>;
    const received = await open(host(), client.name, "/sse/open");
    const [stream] = await opened;
    for (const data of ["a", "b"]) {
      await stream.send(data);
      assert.deepEqual(await take(received.blocks, 1), [[`data: ${data}`]]);
    }
    stream.close();
    assert.equal((await received.blocks.next()).done, true);
  });

  overEach(host, "beats while nothing is sent", async (client) => {
    const received = await open(host(), client.name, "/sse/beat");
    assert.deepEqual(await take(received.blocks, 3), [[":"], [":"], [":"]]);
    const gone = once(reported, "gone");
    await received.leave();
    await gone;
  });

  test("sends heartbeats as rarely as configured, even less often than a timer can wait", async () => {
    const opened = once(reported, "open") as Promise<[EventStream]>;
    const received = await open(host(), "HTTP/1.1", "/sse/rare");
    const [stream] = await opened;
    await sleep(30);
    await stream.send("a");
    assert.deepEqual(await take(received.blocks, 1), [["data: a"]]);
    stream.close();
  });

  overEach(host, "ends when its client leaves, and so does who sends on it", async (client) => {
    const received = await open(host(), client.name, "/sse/endless");
    assert.deepEqual((await take(received.blocks, 2))[1], ["id: 1", "data: 1"]);
    const ended = once(reported, "ended");
    await received.leave();
    await ended;
    assert.doesNotMatch(host().log(), /"level":"?(error|50)/);
  });

  overEach(host, "has headers only for HEAD", async (client) => {
    const reply = await client.request({ method: "HEAD", path: "/sse/open" });
    assert.deepEqual([reply.header("content-type"), reply.text], ["text/event-stream", ""]);
    assert.equal(streams.size, 0);
  });

  overEach(host, "serves Koa middleware, too", async (client) => {
    const reply = await client.request("/koa/x");
    assert.deepEqual([reply.status, reply.header("content-type"), reply.text], [200, "text/event-stream", ""]);
  });

  overEach(host, "whose source fails is cut, not completed", async (client) => {
    const received = await open(host(), client.name, "/sse/fails");
    await assert.rejects(Array.fromAsync(received.blocks));
    assert.match(host().log(), /no more events/);
  });

  test("reports which event the client saw last", async () => {
    const received = await open(host(), "HTTP/1.1", "/sse/seen", {
      "last-event-id": Buffer.from("ü 7").toString("latin1"),
    });
    assert.deepEqual(await Array.fromAsync(received.blocks), [["data: ü 7"]]);
    const fresh = await open(host(), "HTTP/1.1", "/sse/seen");
    assert.deepEqual(await Array.fromAsync(fresh.blocks), [["data: nothing"]]);
  });

  test("refuses values that would not arrive unchanged", async () => {
    const refused = once(reported, "refused");
    await host().client("HTTP/1.1").text("/sse/wrong");
    assert.deepEqual((await refused)[0], [
      'The event of an event is text without line breaks, not "a\\nb"',
      'The id of an event is text without line breaks, not "a\\r"',
      'The id of an event is text without line breaks, not "\\u0000"',
      "retry is a number of milliseconds, not -1",
      "The data of an event is text, not a number",
    ]);
  });

  test("is understood by an EventSource, which reconnects for the events it missed", async (t) => {
    // Node warns that EventSource is experimental.
    t.mock.method(process, "emitWarning", () => undefined);
    const source = new EventSource(`http://127.0.0.1:${host().http}/sse/three`);
    try {
      const message = once(source, "message") as unknown as Promise<[MessageEvent]>;
      const tick = once(source, "tick") as unknown as Promise<[MessageEvent]>;
      assert.equal((await message)[0].data, "hello");
      const [{ data, lastEventId }] = await tick;
      assert.deepEqual([data, lastEventId], ["one\ntwo\nthree\nfour\n", "7"]);
      // It reconnects after the 10 ms that the last event set.
      assert.equal(((await once(source, "message")) as [MessageEvent])[0].lastEventId, "8");
    } finally {
      source.close();
    }
  });
});

describe("a slow reader of an event stream", () => {
  test("slows the sender down, and is cut when it reads nothing", async () => {
    using reader = await RawConnection.open(host().http);
    reader.socket.pause();
    const cut = once(reported, "cut");
    let sent = 0;
    const count = (number: number) => {
      sent = number;
    };
    reported.on("flushed", count);
    reader.write("GET /sse/firehose HTTP/1.1\r\nHost: x\r\n\r\n");
    await cut;
    reported.off("flushed", count);
    assert.ok(sent > 0 && sent < 1000, `${sent} pieces of 64 KiB were taken`);
  });

  test("gets waiting small events together, in their order", async () => {
    const body = new EventBody({ heartbeat: 0 });
    const events = Array.from({ length: 10_000 }, (_, number) => `data: ${number}\n\n`);
    const sent = events.map((event) => body.put(event));
    body.close();
    const pieces = await Array.fromAsync(body as AsyncIterable<string>);
    assert.equal(pieces.join(""), events.join(""));
    assert.ok(pieces.length < 20, `${pieces.length} pieces`);
    await Promise.all(sent);
    assert.ok(new Set(sent).size < 20, `${new Set(sent).size} promises`);
  });

  test("has its stream ended when too many bytes wait for it", async () => {
    const refused = once(reported, "refused") as Promise<[Error & { code: string }]>;
    using reader = await RawConnection.open(host().http);
    reader.socket.pause();
    reader.write("GET /sse/flood HTTP/1.1\r\nHost: x\r\n\r\n");
    const [error] = await refused;
    assert.equal(error.code, "STREAM_CLOSED");
    assert.match(error.message, /reads too slowly/);
  });
});

for (const name of transports) {
  test(`an unload ends event streams at once and in order over ${name}`, async () => {
    const modules = { mod_sse: serving(provider) };
    await using running = await startHost({ modules, config: { unload_grace: 60 } });
    const received = await open(running, name, "/sse/endless");
    await take(received.blocks, 1);
    const listed = await open(running, name, "/sse/open");
    const ended = once(reported, "ended");
    const before = performance.now();
    await Promise.all([running.host.unload("sse"), ended]);
    // The host cuts a stream that does not end by itself after a minute.
    assert.ok(performance.now() - before < 50_000);
    for await (const block of received.blocks) assert.equal(block.length, 2);
    assert.equal((await listed.blocks.next()).done, true);
    assert.equal(streams.size, 0);
    assert.doesNotMatch(running.log(), /failed/);
  });

  test(`a handler that waits for its module to leave responds 503 over ${name}`, async () => {
    await using running = await startHost({ modules: { mod_sse: serving(provider) } });
    const polled = once(reported, "polled");
    const reply = running.client(name).request("/sse/poll");
    await polled;
    await running.host.unload("sse");
    assert.equal((await reply).status, 503);
    assert.doesNotMatch(running.log(), /failed/);
  });
}

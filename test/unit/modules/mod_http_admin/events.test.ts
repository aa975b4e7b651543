import assert from "node:assert/strict";
import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { connect } from "node:net";
import { describe, type TestContext, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { Change } from "#core/types.ts";
import { eventually } from "#test/support/eventually.ts";
import { type AdminHost, adminHost } from "./support.ts";

const MAX_STREAMS = 100;

interface Shown {
  readonly event: string;
  readonly data: Record<string, unknown>;
}

class Listener {
  readonly events: Shown[] = [];
  readonly response: IncomingMessage;

  constructor(response: IncomingMessage) {
    this.response = response;
    let text = "";
    response.on("error", () => undefined).setEncoding("utf8");
    response.on("data", (piece: string) => {
      const blocks = (text + piece).split("\n\n");
      text = blocks.pop() ?? "";
      for (const block of blocks) {
        const [, event, data] = /^event: (.*)\ndata: (.*)$/.exec(block) ?? [];
        if (event !== undefined && data !== undefined) this.events.push({ event, data: JSON.parse(data) });
      }
    });
  }

  /** Resolves to the first matching event, also a future one. */
  async first(fits: (shown: Shown) => boolean): Promise<Shown> {
    for (;;) {
      const found = this.events.find(fits);
      if (found !== undefined) return found;
      await sleep(5);
    }
  }
}

async function listen({ socket }: AdminHost, query = ""): Promise<IncomingMessage> {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  const sent = request({ socketPath: socket, agent: false, path: `/admin/api/events${query}` });
  sent.on("response", resolve).on("error", reject).end();
  return promise;
}

/**
 * The number of followers that always exist: the module itself follows request counts and the
 * latest requests.
 */
const OWN_FOLLOWERS = 2;

/** The number of followers that exist because somebody listens. */
const followers = (running: AdminHost) =>
  (running.host.modules().find(({ name }) => name === "http_admin")?.holds.follower ?? 0) - OWN_FOLLOWERS;

async function until(isSo: () => boolean): Promise<void> {
  await eventually(String(isSo), isSo, { every: 5 });
}

async function serving(t: TestContext, config: Record<string, unknown> = {}): Promise<AdminHost> {
  return adminHost(t, {
    config: { modules_enabled: ["http_admin", "http_health"], ...config },
    modules: [
      {
        name: "talker",
        options: { talker_key: { type: "string", secret: true, describe: "A secret." } },
        load(module) {
          module.hook("say", (text: string) => module.log.info("%s", text));
        },
      },
    ],
  });
}

describe("event streams", { timeout: 300_000 }, () => {
  test("contain requests, log lines without secrets, changes and metrics", async (t) => {
    const running = await serving(t, { talker_key: "a-secret-of-some-length" });
    const listener = new Listener(await listen(running));
    assert.equal(listener.response.headers["content-type"], "text/event-stream");
    await running.fetch("/health/live?token=hidden");
    const { data } = await listener.first(({ event, data: { path } }) => event === "requests" && path !== undefined);
    const { method, path, status, app, complete } = data;
    assert.deepEqual(
      { method, path, status, app, complete },
      {
        method: "GET",
        path: "/health/live",
        status: 200,
        app: "health",
        complete: true,
      },
    );
    running.host.fire("say", "my key is a-secret-of-some-length");
    const line = await listener.first(({ event, data: { module } }) => event === "log" && module === "talker");
    assert.deepEqual([line.data.level, line.data.msg], ["info", "my key is (secret)"]);
    await running.host.reload("http_health");
    const change = (await listener.first(({ event }) => event === "changes")).data as unknown as Change;
    assert.deepEqual([change.what, change.by, change.result], ["reload http_health", "program", "done"]);
    const metrics = await listener.first(({ event }) => event === "figures");
    assert.ok(Number(metrics.data.rss) > 0 && Number(metrics.data.modules) >= 3);
    listener.response.destroy();
  });

  test("contain only the requested topics, refuse unknown ones by name, and end when the server stops", async (t) => {
    const running = await serving(t);
    const listener = new Listener(await listen(running, "?topics=changes"));
    running.host.fire("say", "something");
    await running.host.reload("http_health");
    await listener.first(({ event }) => event === "changes");
    assert.deepEqual([...new Set(listener.events.map(({ event }) => event))], ["changes"]);
    const wrong = await listen(running, "?topics=log,secrets");
    assert.equal(wrong.statusCode, 400);
    assert.match(
      (await wrong.toArray()).join(""),
      /no topic \\"secrets\\": topics are log, requests, figures, changes/,
    );
    const ended = once(listener.response, "end");
    await running.host.stop();
    await ended;
  });

  test("cost nothing while nobody listens", async (t) => {
    const running = await serving(t);
    assert.equal(followers(running), 0);
    const one = await listen(running, "?topics=log,changes");
    const two = await listen(running, "?topics=log");
    assert.equal(followers(running), 2, "one follower for each topic, however many listen");
    one.destroy();
    await until(() => followers(running) === 1);
    two.destroy();
    await until(() => followers(running) === 0);
  });

  test("are refused beyond a limit of a hundred with Retry-After, and accepted again when others have ended", async (t) => {
    const running = await serving(t);
    const responses: IncomingMessage[] = [];
    // The system lets a few hundred connections wait for the socket.
    while (responses.length < 1000) {
      responses.push(...(await Promise.all(Array.from({ length: 100 }, () => listen(running, "?topics=changes")))));
    }
    const open = responses.filter(({ statusCode }) => statusCode === 200);
    const refused = responses.filter(({ statusCode }) => statusCode === 503);
    assert.deepEqual([open.length, refused.length], [MAX_STREAMS, 1000 - MAX_STREAMS]);
    assert.equal(refused[0]?.headers["retry-after"], "30");
    for (const each of refused) each.resume();
    assert.equal((await running.call("GET", "/status")).status, 200);
    for (const each of open) each.destroy();
    await until(() => followers(running) === 0);
    const again = await listen(running);
    assert.equal(again.statusCode, 200);
    again.destroy();
  });

  test("are cut off if their reader is too slow, and the others continue", async (t) => {
    const running = await serving(t);
    const slow = connect(running.socket);
    t.after(() => slow.destroy());
    slow.write("GET /admin/api/events?topics=log HTTP/1.1\r\nHost: localhost\r\n\r\n");
    await new Promise((resolve) => slow.once("readable", resolve));
    const listener = new Listener(await listen(running, "?topics=log"));
    const gone = new Promise((resolve) => slow.once("close", resolve));
    // Much more than the buffers of the system and the stream can store.
    const text = "x".repeat(100_000);
    for (let at = 0; at < 60; at++) {
      running.host.fire("say", text);
      await sleep(1);
    }
    running.host.fire("say", "the end");
    await listener.first(({ data }) => data.msg === "the end");
    await until(() => followers(running) === 1);
    slow.resume();
    await gone;
    listener.response.destroy();
  });

  test("end when the module is unloaded, and the next instance offers new ones", async (t) => {
    const running = await serving(t);
    const listener = new Listener(await listen(running, "?topics=changes"));
    const ended = new Promise((resolve) => listener.response.once("close", resolve));
    await running.host.reload("http_admin");
    await ended;
    const again = await listen(running);
    assert.equal(again.statusCode, 200);
    again.destroy();
  });
});

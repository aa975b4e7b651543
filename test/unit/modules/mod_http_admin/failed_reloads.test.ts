import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { Agent, request } from "node:http";
import { join } from "node:path";
import { test } from "node:test";
import type { Change } from "#core/types.ts";
import { pluginHost } from "#test/unit/core/module/support.ts";
import { callAt } from "./support.ts";

const live = (text: string, more = "") => `${more}
export default (module) => {
  module.depends("http");
  module.provides("http", {
    route: {
      GET: () => ${JSON.stringify(text)},
      "GET /stream": async function* () { for (;;) { yield "tick\\n"; await new Promise((done) => setTimeout(done, 5)); } },
      "WS /echo": async (event) => { const socket = event.accept(); for await (const message of socket) await socket.send(message); },
    },
  });
};`;

test("failed reloads do not disturb requests, a stream and a websocket of the old instance", {
  timeout: 300_000,
}, async (t) => {
  const running = await pluginHost(
    t,
    { "mod_http_live.js": live("first") },
    { modules_enabled: ["http_admin", "http_live"], plugin_autoload: false, load_timeout: 0.3 },
  );
  const socket = join(running.folder, "admin.sock");
  const { port } = new URL(running.url("/"));
  const agent = new Agent({ keepAlive: true, maxSockets: 4 });
  t.after(() => agent.destroy());
  const ask = () =>
    new Promise<string>((resolve) => {
      const sent = request({ port, path: "/live", agent }, async (response) => {
        resolve(`${response.statusCode} ${(await response.toArray()).join("")}`);
      });
      sent.on("error", (error) => resolve(error.message)).end();
    });
  const responses = new Set<string>();
  let requests = 0;
  let isOver = false;
  const clients = Array.from({ length: 4 }, async () => {
    while (!isOver) {
      responses.add(await ask());
      requests += 1;
    }
  });

  const stream = await running.fetch("/live/stream");
  const reader = (stream.body as ReadableStream<Uint8Array>).getReader();
  const web = new WebSocket(running.url("/live/echo").replace("http", "ws"));
  await new Promise((resolve) => web.addEventListener("open", resolve, { once: true }));
  const echo = (text: string) =>
    new Promise((resolve) => {
      web.addEventListener("message", ({ data }) => resolve(data), { once: true });
      web.send(text);
    });

  for (const [code, message] of [
    ["let a = 1;\nlet a = 2;\n", /already been declared/],
    [live("second", 'throw new Error("not today");'), /not today/],
    ['export default () => { throw new Error("not now"); };', /not now/],
    ["export default () => new Promise(() => {});", /it took longer than 0\.3 s: .*load_timeout/],
    ["export default (module) => { module.restore = () => new Promise(() => {}); };", /load_timeout/],
    ["export const something = 1;", /it exports something/],
  ] as const) {
    await writeFile(join(running.plugins, "mod_http_live.js"), code);
    const { status, value } = await callAt<Change>(socket, "POST", "/modules/http_live/reload");
    assert.deepEqual([status, value.result], [422, "failed"]);
    assert.match(value.error?.message ?? "", message);
    assert.equal((await reader.read()).done, false);
    assert.equal(await echo(code), code);
  }
  assert.deepEqual([...responses], ["200 first"]);

  await writeFile(join(running.plugins, "mod_http_live.js"), live("second"));
  const closed = new Promise<number>((resolve) => web.addEventListener("close", ({ code }) => resolve(code)));
  const { value } = await callAt<Change>(socket, "POST", "/modules/http_live/reload");
  assert.equal(value.result, "done");
  assert.equal(await ask(), "200 second");
  assert.equal(await closed, 1012, "service restart: come back");
  isOver = true;
  await Promise.all(clients);
  assert.deepEqual([...responses].toSorted(), ["200 first", "200 second"]);
  assert.ok(requests > 0);
  await reader.cancel();
});

/**
 * Isolated and sandboxed modules: they follow the same contract, and their worker or sandbox ends
 * alone.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { TestHost } from "#core/testing/index.ts";
import { eventually } from "#test/support/eventually.ts";
import { runModes, runningAs } from "#test/support/run_modes.ts";
import { logged, pluginHost, stateOf } from "../module/support.ts";

const app = `
import { Readable } from "node:stream";
import { event_stream } from "modhost/net/http/server";
export const isolated = true;
export const depends = ["http", "helper"];
export const options = { shop_greeting: { type: "string", default: "hello", describe: "What is said." } };
let kept = 0;
let produced = 0;
const seen = [];
async function* events(request) {
  yield { data: "first" };
  await new Promise((resolve) => request.signal.addEventListener("abort", resolve));
  seen.push("cancelled");
}
async function* lines() { for (const line of ["one", "two", "three"]) { yield line + "\\n"; } }
export default function (module) {
  const helper = module.depends("helper");
  module.save = () => ({ kept });
  module.restore = (saved) => { kept = saved.kept; };
  module.hook("shop-poke", ({ by }) => { kept += by; });
  module.provides("http", {
    cors: { enabled: true, origins: ["https://friend.example"] },
    route: {
      GET: () => module.get_option_string("shop_greeting"),
      "GET /object": () => ({ status_code: 201, headers: { x_own: "yes", constructor: "own", set_cookie: ["a=1", "b=2"] }, body: Buffer.from("bytes") }),
      "GET /lines": () => lines(),
      "GET /readable": () => Readable.from(["a", "b"]),
      "GET /empty": () => 204,
      "GET /teapot": () => 418,
      "GET /error": () => { throw new Error("a secret of the inside"); },
      "GET /shown": () => { throw Object.assign(new Error("what is shown"), { code: 409, expose: true }); },
      "GET /trailers": ({ response }) => { response.trailers = { x_sum: "3" }; response.trailer_names = ["x_sum"]; return lines(); },
      "GET /pass/*": () => undefined,
      "GET /who": ({ request }) => JSON.stringify({ ip: request.ip, secure: request.secure, path: request.path, query: request.url.query, host: request.headers.host, inner: Object.keys(request.headers).filter((name) => name.includes("modhost")) }),
      "GET /kept": () => String(kept),
      "GET /helped": async () => String(await helper.double(21)),
      "GET /leave": ({ response }) => { response.send("left"); setTimeout(() => process.exit(3), 20); },
      "GET /exit": () => process.exit(3),
      "GET /loop": () => { for (;;); },
      "GET /reject": () => { Promise.reject(new Error("nobody waits")); return "rejected"; },
      "GET /log": () => { module.log.child({ job: 3 }).info({ user: 7, run: () => 1 }, "a line %d", 7); module.set_status("info", "all well"); return ""; },
      "GET /where": async () => String((await import("node:worker_threads")).isMainThread),
      POST: ({ request }) => request.body.toUpperCase(),
      "POST /json": async ({ request }) => JSON.stringify(await request.json()),
      "GET /events": ({ request }) => event_stream(events(request)),
      "GET /seen": () => JSON.stringify(seen),
      "GET /endless": async function* () { try { for (;;) { produced += 65536; yield Buffer.alloc(65536); } } finally { seen.push("ended"); } },
      "GET /produced": () => String(produced),
      "GET /leak": () => { const kept = []; for (;;) kept.push(Array.from({ length: 1000 }, (_, at) => ({ at }))); },
      "WS /chat": async (event) => { const socket = event.accept(); for await (const text of socket) { if (text === "die") process.exit(1); await socket.send("heard " + text); } },
      "WS /refused": () => 403,
      "GET /file": ({ response }) => response.send_file(module.get_directory() + "/page.txt"),
    },
  });
  return { add: (a, b) => a + b, limits: { most: 5 } };
}
`;

const helper = `
export default () => ({ double: (value) => 2 * value });
`;

const user = `
export const depends = ["http", "shop"];
export default function (module) {
  const shop = module.depends("shop");
  module.provides("http", { route: { GET: async () => String(await shop.add(2, 3)) + " of " + shop.limits.most } });
}
`;

const files = { "mod_shop.js": app, "mod_helper.js": helper, "page.txt": "0123456789" };
const common = { isolated_timeout: 30, isolated_heap: "32MiB", quarantine_pause: 0.05 };

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await sleep(5);
}

async function body(running: TestHost, path: string): Promise<string> {
  const response = await running.inject(path);
  assert.equal(response.status, 200, `${path}: ${response.status} ${response.body}`);
  return response.body;
}

for (const { mode, title, skip } of runModes) {
  describe(title, { skip }, () => {
    // Files in the data folder of the server cannot be granted.
    const grant = { read: ["page.txt"] };
    const config = { ...common, data_path: "data", ...runningAs(mode, files, { call: ["helper"], grant }) };

    test("responds as any other does", { timeout: 120_000 }, async (t) => {
      const running = await pluginHost(t, { ...files, "mod_user.js": user }, config);
      assert.equal(stateOf(running, "shop")?.note, undefined);
      assert.equal(await body(running, "/shop"), "hello");
      assert.equal(await body(running, "/shop/where"), String(mode === "sandboxed"));
      assert.equal(stateOf(running, "shop")?.run, mode);
      const object = await running.inject("/shop/object");
      assert.equal(object.status, 201);
      assert.equal(object.headers["x-own"], "yes");
      assert.equal(object.headers.constructor, "own", "also by the name of something that objects inherit");
      assert.deepEqual(object.headers["set-cookie"], ["a=1", "b=2"]);
      assert.equal(object.body, "bytes");
      assert.equal(await body(running, "/shop/lines"), "one\ntwo\nthree\n");
      assert.equal(await body(running, "/shop/readable"), "ab");
      assert.equal((await running.inject("/shop/empty")).status, 204);
      assert.equal((await running.inject("/shop/teapot")).status, 418);
      const trailers = await running.inject("/shop/trailers");
      assert.equal(trailers.trailers["x-sum"], "3");
      assert.equal((await running.inject("/shop/pass/on")).status, 404);
      assert.equal((await running.inject("/shop/nowhere")).status, 404);
      assert.equal((await running.inject({ method: "DELETE", path: "/shop" })).status, 405);
      const shown = await running.inject("/shop/shown");
      assert.deepEqual([shown.status, /what is shown/.test(shown.body)], [409, true]);
      const failed = await running.inject("/shop/error");
      assert.equal(failed.status, 500);
      assert.doesNotMatch(failed.body, /secret/);
      await until(() => logged(running, "error").some(({ msg }) => /a secret of the inside/.test(msg)));
      const who = JSON.parse(await body(running, "/shop/who?a=1"));
      assert.deepEqual(who, {
        ip: "127.0.0.1",
        secure: false,
        path: "/shop/who",
        query: "a=1",
        host: who.host,
        inner: [],
      });
      assert.equal((await running.inject({ method: "POST", path: "/shop", body: "text" })).body, "TEXT");
      assert.equal((await running.inject({ method: "POST", path: "/shop/json", body: '{"a":1}' })).body, '{"a":1}');
      assert.equal((await running.inject({ method: "POST", path: "/shop/json", body: "no json" })).status, 400);
      const range = await running.inject({ path: "/shop/file", headers: { range: "bytes=2-4" } });
      assert.deepEqual([range.status, range.body], [206, "234"]);
      const cors = await running.inject({ path: "/shop", headers: { origin: "https://friend.example" } });
      assert.equal(cors.headers["access-control-allow-origin"], "https://friend.example");
      assert.equal((await running.inject({ method: "HEAD", path: "/shop" })).headers["content-length"], "5");
      assert.equal(await body(running, "/shop/helped"), "42");
      assert.equal(await body(running, "/user"), "5 of 5");
      assert.equal(await body(running, "/shop/log"), "");
      await until(() => stateOf(running, "shop")?.note === "all well");
      const lines = () => logged(running, "info").filter(({ msg }) => msg === "a line 7");
      await until(() => lines().length > 0);
      const [line] = lines();
      assert.deepEqual([line?.module, line?.job, line?.user], ["shop", 3, 7], "its fields are in the log");
      running.host.fire("shop-poke", { by: 4 });
      // Events and requests arrive over different connections, in any order.
      await eventually("the event arrives", async () => (await body(running, "/shop/kept")) === "4");
      await running.host.reload("shop");
      assert.equal(await body(running, "/shop/kept"), "4");
      assert.equal(await body(running, "/user"), "5 of 5");
      assert.equal(await body(running, "/shop/reject"), "rejected");
      await running.host.unload("shop");
      assert.deepEqual(running.host.residue("shop"), []);
      assert.equal((await running.inject("/shop")).status, 404);
    });

    test("has websockets and streams, which are cut when it ends, and closed by a reload as those of others", {
      timeout: 120_000,
    }, async (t) => {
      const running = await pluginHost(t, files, config);
      const open = async () => {
        const socket = new WebSocket(running.url("/shop/chat").replace("http", "ws"));
        await once(socket, "open");
        return socket;
      };
      const first = await open();
      first.send("you");
      const [{ data }] = (await once(first, "message")) as [MessageEvent];
      assert.equal(data, "heard you");
      const refused = new WebSocket(running.url("/shop/refused").replace("http", "ws"));
      await once(refused, "error");
      const closed = once(first, "close") as Promise<CloseEvent[]>;
      await running.host.reload("shop");
      assert.equal((await closed)[0]?.code, 1012);
      const second = await open();
      const cut = once(second, "close");
      second.send("die");
      await cut;
      await until(() => logged(running, "warn").some(({ msg }) => /process\.exit\(1\)/.test(msg)));
      await until(() => stateOf(running, "shop")?.status === "loaded");
      assert.equal(await body(running, "/shop"), "hello");
    });

    test("sends no faster than its clients read, and is notified when they leave", { timeout: 120_000 }, async (t) => {
      const running = await pluginHost(t, files, config);
      const events = await running.stream("/shop/events");
      for await (const piece of events.body) {
        assert.match(String(piece), /data: first/);
        break;
      }
      await events[Symbol.asyncDispose]();
      const endless = await running.stream("/shop/endless");
      let before = -1;
      for (let now = 0; now !== before; now = Number(await body(running, "/shop/produced"))) {
        before = now;
        await sleep(100);
      }
      assert.ok(before < 16 * 2 ** 20, `${before} bytes were produced for a client that reads none`);
      await endless[Symbol.asyncDispose]();
      await eventually(
        "its stream is cancelled",
        async () => (await body(running, "/shop/seen")) === '["cancelled","ended"]',
      );
      // The host asks for more of a body only as the handler takes it.
      const big = Buffer.alloc(3 * 2 ** 20, "x");
      const response = await running.inject({ method: "POST", path: "/shop", body: big });
      assert.equal(response.body.length, big.length);
      const tooBig = await running.inject({ method: "POST", path: "/shop", body: Buffer.alloc(11 * 2 ** 20) });
      assert.equal(tooBig.status, 413);
    });

    test("is refused calls that cannot reach the host while it loads", { timeout: 120_000 }, async (t) => {
      const wrong = {
        shares: "module.shared('x')",
        hooks: "module.hook('http-error', () => '')",
        offers: "module.provides('net', { name: 'x', onconnect() {} })",
        needs: "module.depends('helper')",
        fires: "module.fire_event('x')",
        items: "module.handle_items('thing', () => {}, () => {})",
      };
      const sources = Object.entries(wrong).map(([name, code]) => {
        return [`mod_${name}.js`, `export const isolated = true;\nexport default (module) => void ${code};`];
      });
      const all = { ...Object.fromEntries(sources), "mod_helper.js": helper };
      const running = await pluginHost(t, all, { ...config, ...runningAs(mode, all, { call: ["helper"] }) });
      for (const name of Object.keys(wrong)) {
        const state = stateOf(running, name);
        assert.equal(state?.status, "failed", `${name}: ${state?.status}`);
        assert.match(state?.note ?? "", new RegExp(`An? ${mode} module cannot .*: `), name);
      }
      assert.match(stateOf(running, "needs")?.note ?? "", /export const depends = \["helper"\]/);
    });

    test("can be any module that the option names; top-level code that never ends harms nobody", {
      timeout: 120_000,
    }, async (t) => {
      const sources = {
        "mod_plain.js":
          "import { isMainThread } from 'node:worker_threads';\nexport const depends = ['http'];\nexport default (module) => module.provides('http', { route: { GET: () => String(isMainThread) } });",
        "mod_stuck.js": "Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);",
      };
      const withTimeout = (load_timeout: number) =>
        pluginHost(t, sources, {
          ...common,
          ...(mode === "isolated"
            ? { modules_isolated: ["plain", "mod_stuck"] }
            : runningAs(mode, {}, { names: ["plain", "stuck"] })),
          load_timeout,
        });
      let running = await withTimeout(5);
      // On a busy machine `plain` may exceed the timeout as well, so the test tries longer ones.
      // `stuck` exceeds any timeout.
      for (const seconds of [20, 80]) {
        const reason = stateOf(running, "plain")?.note ?? "";
        if (reason.includes("load_timeout")) running = await withTimeout(seconds);
      }
      assert.equal(await body(running, "/plain"), String(mode === "sandboxed"));
      assert.equal(stateOf(running, "stuck")?.status, "failed");
    });

    for (const [path, reason, own] of [
      ["/shop/leak", /out of memory|memory limit/i, {}],
      ["/shop/exit", /process\.exit\(3\)/, {}],
      ["/shop/loop", /did not respond for \d+ s/, { isolated_timeout: 2 }],
    ] as const) {
      test(`is restarted after it ended by ${path}, and its request gets 503`, { timeout: 120_000 }, async (t) => {
        const running = await pluginHost(t, files, { ...config, ...own });
        const ended = await running.inject(path);
        assert.equal(ended.status, 503);
        await until(() => logged(running, "warn").some(({ msg }) => reason.test(msg)));
        while ((await running.inject("/shop")).status !== 200) await sleep(20);
      });
    }
  });
}

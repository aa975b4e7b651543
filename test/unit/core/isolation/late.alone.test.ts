/**
 * Isolated modules: how they are declared, what they provide once they are loaded, and bodies that
 * are larger than their memory.
 */
import assert from "node:assert/strict";
import { request } from "node:http";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { TestHost } from "#core/testing/index.ts";
import { eventually } from "#test/support/eventually.ts";
import { rawExchange } from "#test/support/raw.ts";
import { runModes, runningAs } from "#test/support/run_modes.ts";
import { logged, pluginHost, stateOf } from "../module/support.ts";

const config = { isolated_timeout: 60, isolated_heap: "64MiB" };
const where = 'String((await import("node:worker_threads")).isMainThread)';
const app = `(module) => { module.depends("http"); module.provides("http", { route: { GET: async () => ${where} } }); }`;

async function body(running: TestHost, path: string): Promise<string> {
  const response = await running.inject(path);
  assert.equal(response.status, 200, `${path}: ${response.status} ${response.body}`);
  return response.body;
}

test("a module is isolated by a line of its file, and is refused if it sets isolated in another way", {
  timeout: 300_000,
}, async (t) => {
  const sources = {
    "mod_line.js": `import { defineModule } from "modhost";\nexport default defineModule({ isolated: true, load: ${app} });`,
    "mod_plain.js": `export default { depends: ["http"], isolated: true, load: ${app} };`,
    "mod_hidden.js": `const yes = true;\nexport const isolated = yes;\nexport default ${app};`,
  };
  const running = await pluginHost(t, sources, config);
  assert.equal(await body(running, "/line"), "false");
  assert.equal(await body(running, "/plain"), "false");
  assert.equal(stateOf(running, "hidden")?.status, "failed");
  assert.match(stateOf(running, "hidden")?.note ?? "", /export const isolated = true/);
});

for (const { mode, title, runner, skip } of runModes) {
  test(`an app that ${title} provides after it is loaded is served until the module is unloaded`, {
    skip,
    timeout: 300_000,
  }, async (t) => {
    const source = `export const isolated = true;
    export default (module) => {
      module.depends("http");
      module.hook("late-open", ({ name }) => module.provides("http", { name, route: { GET: ({ request }) => name + " " + request.id } }));
    };`;
    const running = await pluginHost(
      t,
      { "mod_late.js": source },
      { ...config, ...runningAs(mode, { "mod_late.js": source }) },
    );
    assert.equal((await running.inject("/late_shop")).status, 404);
    running.host.fire("late-open", { name: "late_shop" });
    const isServed = (path: string) =>
      eventually(`${path} is served`, async () => (await running.inject(path)).status === 200, { every: 5 });
    await isServed("/late_shop");
    running.host.fire("late-open", { name: "late_stall" });
    await isServed("/late_stall");
    assert.match(await body(running, "/late_shop"), /^late_shop /);
    await running.unload("late");
    assert.equal((await running.inject("/late_shop")).status, 404);
    assert.deepEqual(running.host.residue("late"), []);
  });

  test(`the id of a request is the same in the ${runner} as in the host`, { skip, timeout: 300_000 }, async (t) => {
    const sources = {
      "mod_shop.js":
        'export const isolated = true;\nexport default (module) => { module.depends("http"); module.provides("http", { route: { GET: ({ request }) => request.id } }); };',
      "mod_tell.js":
        'export default (module) => module.hook("http-finished", ({ request }) => module.log.info("id %s", request.id));',
    };
    const running = await pluginHost(t, sources, { ...config, ...runningAs(mode, sources) });
    const id = await body(running, "/shop");
    assert.notEqual(await body(running, "/shop"), id);
    await eventually(`${id} is logged`, () => logged(running, "info").some(({ msg }) => msg === `id ${id}`));
  });

  test(`Koa middleware of ${title} gets all of its paths, and passes on requests that it does not handle`, {
    skip,
    timeout: 300_000,
  }, async (t) => {
    const source = `export const isolated = true;
    export default (module) => {
      module.depends("http");
      module.provides("http", {
        route: { "GET /own": () => "route" },
        middleware: [
          async (context, next) => { context.set("x-by", "middleware"); await next(); },
          async (context, next) => {
            if (context.path === "/pass") return next();
            let bytes = 0;
            for await (const piece of context.req) bytes += piece.length;
            context.body = { path: context.path, method: context.method, bytes };
          },
        ],
      });
    };`;
    const running = await pluginHost(
      t,
      { "mod_koa.js": source },
      { ...config, ...runningAs(mode, { "mod_koa.js": source }) },
    );
    assert.equal(await body(running, "/koa/own"), "route");
    const response = await running.inject({ method: "PUT", path: "/koa/some/where", body: "12345" });
    assert.equal(response.status, 200, response.body);
    assert.deepEqual(JSON.parse(response.body), { path: "/some/where", method: "PUT", bytes: 5 });
    assert.equal(response.headers["x-by"], "middleware");
    assert.equal((await running.inject("/koa/pass")).status, 404);
  });

  test(`early hints of ${title} reach the client, and trailers of the client reach the module`, {
    skip,
    timeout: 120_000,
  }, async (t) => {
    const source = `export const isolated = true;
    export default (module) => {
      module.depends("http");
      module.provides("http", {
        streaming_uploads: true,
        route: {
          "POST /sum": async ({ request, response }) => {
            response.raw.writeEarlyHints({ link: "</a.css>; rel=preload" });
            for await (const piece of request.body_stream);
            return request.raw.trailers["x-sum"];
          },
        },
      });
    };`;
    const running = await pluginHost(
      t,
      { "mod_shop.js": source },
      { ...config, ...runningAs(mode, { "mod_shop.js": source }) },
    );
    const { port } = new URL(running.url("/"));
    const head = "POST /shop/sum HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n";
    const text = await rawExchange(Number(port), `${head}Trailer: X-Sum\r\n\r\n3\r\nabc\r\n0\r\nX-Sum: three\r\n\r\n`);
    assert.match(text, /^HTTP\/1\.1 103 Early Hints\r\nLink: <\/a\.css>; rel=preload\r\n/);
    assert.match(text, /HTTP\/1\.1 200 OK\r\n.*\r\n\r\nthree$/s);
  });

  test(`an upload of 192 MiB goes through ${title} with far less memory, no faster than it reads`, {
    skip,
    timeout: 600_000,
  }, async (t) => {
    const source = `export const isolated = true;
    let read = 0;
    let go;
    const asked = new Promise((resolve) => { go = resolve; });
    export default (module) => {
      module.depends("http");
      module.provides("http", {
        streaming_uploads: true,
        route: {
          "GET /go": () => { go(); return "gone on"; },
          "GET /read": () => String(read),
          "POST /sum": async ({ request }) => {
            for await (const piece of request.body_stream) {
              read += piece.length;
              if (read > 1_000_000) await asked;
            }
            return String(read);
          },
        },
      });
    };`;
    const running = await pluginHost(
      t,
      { "mod_big.js": source },
      {
        ...config,
        ...runningAs(mode, { "mod_big.js": source }),
        http_max_content_size: 1000,
      },
    );
    const piece = Buffer.alloc(2 ** 20, "x");
    const pieces = 192;
    let written = 0;
    const before = process.memoryUsage().external;
    let most = 0;
    const sum = new Promise<string>((resolve, reject) => {
      const upload = request(running.url("/big/sum"), { method: "POST" }, async (response) => {
        resolve(Buffer.concat(await Array.fromAsync(response)).toString());
      });
      upload.on("error", reject);
      const write = () => {
        while (written < pieces) {
          written += 1;
          most = Math.max(most, process.memoryUsage().external - before);
          if (!upload.write(piece)) {
            upload.once("drain", write);
            return;
          }
        }
        upload.end();
      };
      write();
    });
    await eventually("a megabyte is read", async () => Number(await body(running, "/big/read")) >= 1_000_000);
    for (let last = -1; last !== written; await sleep(100)) last = written;
    assert.ok(written < 32, `${written} MiB were taken of a handler that reads one`);
    await body(running, "/big/go");
    assert.equal(await sum, String(pieces * piece.length));
    assert.ok(most < 128 * 2 ** 20, `${most} bytes were held`);
    assert.equal(
      logged(running, "warn").find(({ msg }) => /(?:worker|sandbox) ended/.test(msg)),
      undefined,
    );
  });
}

import assert from "node:assert/strict";
import { describe, type TestContext, test } from "node:test";
import type { LogLine, Module } from "#core/types.ts";
import type { FinishedRequest, History, RouteFigures } from "#modules/mod_http_admin/types.ts";
import { adminHost } from "./support.ts";

const INTERVAL = 10;
const SAMPLES = 360;
const MAX_ROUTES = 128;

async function shop(t: TestContext) {
  return adminHost(t, {
    clock: "manual",
    modules: [
      {
        name: "mod_shop",
        load(module: Module) {
          module.depends("http");
          module.provides("http", {
            route: {
              "GET /": "shop",
              "POST /items": ({ request }) => `${request.body.length}`,
              "GET /broken": 503,
              ...Object.fromEntries(Array.from({ length: 200 }, (_, at) => [`GET /r${at}`, "one of many"])),
            },
          });
          module.hook("say", (text: string) => module.log.warn("%s", text));
        },
      },
    ],
  });
}

const shopRoute = "module=shop&route=GET%20%2Fshop%2F";

describe("an hour of history", () => {
  test("has a sample of the server every ten seconds, and the rate of requests in between", async (t) => {
    const running = await shop(t);
    assert.deepEqual((await running.call<History>("GET", "/history?series=requests")).value, {
      interval: INTERVAL,
      time: [],
      series: { requests: [] },
    });
    for (let at = 0; at < 5; at += 1) await running.inject("/shop/");
    await running.clock.advance(2 * INTERVAL);
    const { value } = await running.call<History>("GET", "/history");
    assert.equal(value.time.length, 2);
    assert.equal(Math.round((value.time[1] ?? 0) - (value.time[0] ?? 0)), INTERVAL);
    assert.ok(value.series.requests?.[0] && value.series.requests[0] > 0 && (value.series.rss?.[1] ?? 0) > 1e6);
    const of = await running.call<History>("GET", `/history?${shopRoute}&series=requests,p50,sent`);
    assert.deepEqual(of.value.series.requests, [0.5, 0]);
    assert.deepEqual(of.value.series.sent, [2, 0]);
    assert.deepEqual([typeof of.value.series.p50?.[0], of.value.series.p50?.[1]], ["number", null]);
  });

  test("is bounded: the oldest samples are dropped, and routes beyond the limit share a row", async (t) => {
    const running = await shop(t);
    await running.inject("/shop/");
    for (let at = 0; at < 200; at += 1) await running.inject(`/shop/r${at}`);
    await running.clock.advance(INTERVAL);
    const rows = (await running.call<RouteFigures[]>("GET", "/routes/figures")).value;
    assert.equal(rows.length, MAX_ROUTES + 1);
    assert.equal(rows[0]?.route, "other");
    assert.equal(
      rows.reduce((sum, { hour }) => sum + hour.requests, 0),
      201,
    );
    await running.clock.advance(SAMPLES * INTERVAL);
    assert.equal((await running.call<History>("GET", "/history?series=cpu")).value.time.length, SAMPLES);
    const later = (await running.call<RouteFigures[]>("GET", "/routes/figures")).value;
    assert.ok(
      later.every(({ module }) => module !== "shop"),
      JSON.stringify(later),
    );
    // Rows of routes that were idle for an hour can be used for other routes.
    await running.inject("/shop/r199");
    const names = (await running.call<RouteFigures[]>("GET", "/routes/figures")).value.map(({ route }) => route);
    assert.ok(names.includes("GET /shop/r199"), names.join());
  });

  test("contains errors, rate and percentiles of a route in the last minute and hour, including requests since the last sample", async (t) => {
    const running = await shop(t);
    for (let at = 0; at < 3; at += 1) await running.inject("/shop/broken");
    const rowOf = async () =>
      (await running.call<RouteFigures[]>("GET", "/routes/figures")).value.find(
        ({ route }) => route === "GET /shop/broken",
      );
    const row = await rowOf();
    assert.deepEqual([row?.module, row?.minute.requests, row?.minute.errors], ["shop", 3, 3]);
    const { p50 = 0, p90 = 0, p99 = 0 } = row?.hour ?? {};
    assert.ok(p50 > 0 && p50 <= p90 && p90 <= p99, `${p50} ${p90} ${p99}`);
    await running.clock.advance(8 * INTERVAL);
    const later = await rowOf();
    assert.deepEqual([later?.rate, later?.minute, later?.hour.errors], [0, { requests: 0, errors: 0 }, 3]);
  });

  test("continues across a reload of http_admin and http, as do the latest requests", async (t) => {
    const running = await shop(t);
    await running.inject("/shop/broken");
    await running.clock.advance(INTERVAL);
    const past = await running.call<History>("GET", "/history");
    for (const name of ["http_admin", "http"]) {
      await running.host.reload(name);
      const after = await running.call<History>("GET", "/history");
      assert.deepEqual(after.value, past.value, name);
    }
    await running.inject("/shop/broken");
    const rows = (await running.call<RouteFigures[]>("GET", "/routes/figures")).value;
    assert.equal(rows.find(({ module }) => module === "shop")?.hour.requests, 2);
    const { value } = await running.call<FinishedRequest[]>("GET", "/requests?app=shop");
    assert.deepEqual(
      value.map(({ status }) => status),
      [503, 503],
    );
  });

  test("refuses unknown series and routes by name", async (t) => {
    const running = await shop(t);
    for (const [query, status, wanted] of [
      ["series=cpu,luck", 400, /no series \\"luck\\" here: series are cpu,/],
      ["series=cpu&module=shop&route=x", 400, /series are requests, errors/],
      ["module=shop", 400, /give both fields: module and route/],
      ["module=shop&route=x", 404, /x of shop had no requests in the last hour/],
    ] as const) {
      const response = await running.call("GET", `/history?${query}`);
      assert.equal(response.status, status);
      assert.match(JSON.stringify(response.value), wanted);
    }
  });
});

describe("queries of the past", () => {
  test("filter requests by app, status, method and path, and show no query strings", async (t) => {
    const running = await shop(t);
    await running.inject("/shop/?token=hidden");
    await running.inject("/shop/broken");
    await running.inject({ method: "POST", path: "/shop/items", body: "12345" });
    await running.inject(`/nowhere/${"x".repeat(2000)}`);
    const find = async (query: string) => (await running.call<FinishedRequest[]>("GET", `/requests?${query}`)).value;
    const all = await find("limit=4");
    assert.deepEqual(
      all.map(({ method, status }) => `${method} ${status}`),
      ["GET 200", "GET 503", "POST 200", "GET 404"],
    );
    assert.deepEqual([all[0]?.path, all[0]?.route, all[0]?.module], ["/shop/", "GET /shop/", "shop"]);
    assert.equal(all[3]?.path.length, 1024);
    assert.doesNotMatch(JSON.stringify(all), /hidden/);
    const paths = async (query: string) => (await find(query)).map(({ path }) => path.slice(0, 13));
    assert.deepEqual(await paths("app=shop&status=5xx"), ["/shop/broken"]);
    assert.deepEqual(await paths("status=404"), ["/nowhere/xxxx"]);
    assert.deepEqual(await paths("method=post"), ["/shop/items"]);
    assert.deepEqual(await paths("module=shop&path=ite"), ["/shop/items"]);
  });

  test("find log lines from before the Admin API was loaded, which are numbered", async (t) => {
    const running = await shop(t);
    running.host.fire("say", "Something is odd");
    running.host.fire("say", "something else");
    const find = async (query: string) => (await running.call<LogLine[]>("GET", `/log?${query}`)).value;
    const odd = await find("text=ODD&level=warn&module=shop");
    assert.deepEqual(
      odd.map(({ msg }) => msg),
      ["Something is odd"],
    );
    const n = odd[0]?.n ?? 0;
    assert.deepEqual(
      (await find(`before=${n + 2}&level=warn`)).map((line) => line.n - n),
      [0, 1],
    );
    assert.deepEqual(await find(`before=${n + 1}&limit=1`), odd);
    assert.deepEqual(await find("level=error"), []);
  });
});

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { describe, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { createMetrics } from "#core/index.ts";
import type { Module } from "#core/types.ts";
import { eventually } from "#test/support/eventually.ts";
import { type ReadFamily, readExposition } from "#test/support/exposition.ts";
import { serving, type TestHost, withHost } from "#test/support/host.ts";

const secret = "a-long-random-text";
/** The metrics of `collectDefaultMetrics` in prom-client 15.1.3. */
const promClient: readonly (readonly [string, (readonly string[])?])[] = [
  ["process_cpu_user_seconds_total counter"],
  ["process_cpu_system_seconds_total counter"],
  ["process_cpu_seconds_total counter"],
  ["process_start_time_seconds gauge"],
  ["process_resident_memory_bytes gauge"],
  ["process_virtual_memory_bytes gauge"],
  ["process_heap_bytes gauge"],
  ["process_open_fds gauge"],
  ["process_max_fds gauge"],
  ["nodejs_eventloop_lag_seconds gauge"],
  ["nodejs_eventloop_lag_min_seconds gauge"],
  ["nodejs_eventloop_lag_max_seconds gauge"],
  ["nodejs_eventloop_lag_mean_seconds gauge"],
  ["nodejs_eventloop_lag_stddev_seconds gauge"],
  ["nodejs_eventloop_lag_p50_seconds gauge"],
  ["nodejs_eventloop_lag_p90_seconds gauge"],
  ["nodejs_eventloop_lag_p99_seconds gauge"],
  ["nodejs_active_resources gauge", ["type"]],
  ["nodejs_active_resources_total gauge"],
  ["nodejs_active_handles gauge", ["type"]],
  ["nodejs_active_handles_total gauge"],
  ["nodejs_active_requests gauge", ["type"]],
  ["nodejs_active_requests_total gauge"],
  ["nodejs_heap_size_total_bytes gauge"],
  ["nodejs_heap_size_used_bytes gauge"],
  ["nodejs_external_memory_bytes gauge"],
  ["nodejs_heap_space_size_total_bytes gauge", ["space"]],
  ["nodejs_heap_space_size_used_bytes gauge", ["space"]],
  ["nodejs_heap_space_size_available_bytes gauge", ["space"]],
  ["nodejs_version_info gauge", ["version", "major", "minor", "patch"]],
  ["nodejs_gc_duration_seconds histogram", ["kind"]],
];

/** Stored by the module `faulty`, whose behaviour the test sets. */
const faulty = { mode: "works" };

const host = withHost({
  config: {
    modules_enabled: ["http", "http_openmetrics"],
    openmetrics_tokens: [secret],
    openmetrics_timeout: 0.2,
    quarantine_failures: 1,
  },
  modules: {
    mod_shop: serving({
      route: {
        "GET /": "shop",
        "GET /items/*": (_event, id) => `item ${id}`,
        "POST /items": ({ request }) => `${request.body.length}`,
        "GET /fails": () => {
          throw new Error("on purpose");
        },
      },
    }),
    mod_orders: (module: Module) => {
      const metrics = createMetrics({ orders_total: { kind: "counter", help: "Orders", labels: ["state"] } });
      module.provides("metrics", metrics);
      metrics.add("orders_total", 3, "paid");
      return metrics;
    },
    mod_fragile: (module: Module) => {
      module.hook("break", () => {
        throw new Error("broken");
      });
    },
    mod_faulty: (module: Module) => {
      module.provides("metrics", {
        metrics: { faulty_things: { kind: "gauge", help: "Things" } },
        collect() {
          if (faulty.mode === "throws") throw new Error("no figures today");
          if (faulty.mode === "hangs") return new Promise(() => undefined);
          return [
            { name: "faulty_things", value: 5 },
            { name: "faulty_unknown", value: 1 },
          ];
        },
      });
    },
  },
});

async function scrape(server: TestHost, init: RequestInit = {}): Promise<Map<string, ReadFamily>> {
  const response = await fetch(`http://127.0.0.1:${server.http}/metrics`, init);
  assert.equal(response.status, 200);
  return readExposition(await response.text(), "prometheus");
}

function sampleOf(
  families: Map<string, ReadFamily>,
  name: string,
  labels: Record<string, string> = {},
): number | undefined {
  const family = families.get(name) ?? families.get(name.replace(/_(?:bucket|sum|count)$/, ""));
  return family?.samples.find(
    (sample) =>
      sample.name === name && Object.entries(labels).every(([label, value]) => sample.labels[label] === value),
  )?.value;
}

const total = (families: Map<string, ReadFamily>) =>
  [...families.values()].reduce((sum, { samples }) => sum + samples.length, 0);

/** A request is counted when it ends, which may be after its client has the response. */
async function scrapeUntil(holds: (families: Map<string, ReadFamily>) => boolean): Promise<Map<string, ReadFamily>> {
  let families = new Map<string, ReadFamily>();
  await eventually("the metrics show it", async () => {
    families = await scrape(host());
    return holds(families);
  });
  return families;
}

describe("the metrics of a host", () => {
  const get = (path: string, init: RequestInit = {}) =>
    fetch(`http://127.0.0.1:${host().http}${path}`, init).then((response) => response.text());

  test("count requests by module and route, with their status, bytes and time", async () => {
    await get("/shop");
    await get("/shop/items/1");
    await get("/shop/items/2");
    await get("/shop/items", { method: "POST", body: "12345" });
    await get("/shop/fails");
    await get("/nowhere");
    const families = await scrapeUntil((read) => {
      const all = read.get("modhost_http_requests_total")?.samples ?? [];
      return all.reduce((sum, { labels, value }) => sum + (labels.route === "GET /metrics" ? 0 : value), 0) >= 6;
    });
    const items = { module: "shop", route: "GET /shop/items/*" };
    assert.equal(sampleOf(families, "modhost_http_requests_total", { ...items, class: "2xx" }), 2);
    assert.equal(sampleOf(families, "modhost_http_request_duration_seconds_count", items), 2);
    assert.equal(sampleOf(families, "modhost_http_response_bytes_total", items), "item 1item 2".length);
    assert.ok((sampleOf(families, "modhost_http_handler_seconds_total", items) ?? 0) > 0);
    assert.equal(sampleOf(families, "modhost_http_request_bytes_total", { route: "POST /shop/items" }), 5);
    assert.equal(sampleOf(families, "modhost_http_requests_total", { route: "GET /shop/fails", class: "5xx" }), 1);
    const none = { module: "none", route: "none", class: "4xx" };
    assert.equal(sampleOf(families, "modhost_http_requests_total", none), 1);
    assert.equal(sampleOf(families, "modhost_http_requests_in_flight", { module: "http_openmetrics" }), 1);
    assert.ok((sampleOf(families, "modhost_http_connections_total", { scheme: "http" }) ?? 0) > 0);
    assert.equal(sampleOf(families, "modhost_module_up", { module: "shop" }), 1);
  });

  test("have no further series after requests for 600 paths", async () => {
    const crawl = async (round: number) => {
      const paths = Array.from({ length: 50 }, (_, at) => `${round}-${at}`);
      await Promise.all(paths.map((path) => get(at(round) === 0 ? `/shop/items/${path}` : `/crawl/${path}?q=${path}`)));
    };
    const at = (round: number) => round % 2;
    await crawl(0);
    await crawl(1);
    const metrics = { route: "GET /metrics", class: "2xx" };
    const items = { route: "GET /shop/items/*", class: "2xx" };
    const crawled = (families: Map<string, ReadFamily>) =>
      Number(sampleOf(families, "modhost_http_requests_total", items)) +
      Number(sampleOf(families, "modhost_http_requests_total", { route: "none", class: "4xx" }));
    // A scrape is itself a request, which the next one counts.
    const before = await scrapeUntil(
      (families) =>
        sampleOf(families, "modhost_http_requests_total", metrics) !== undefined && crawled(families) >= 100,
    );
    for (let round = 2; round < 14; round += 1) await crawl(round);
    const after = await scrapeUntil((families) => crawled(families) - crawled(before) >= 600);
    const series = (families: Map<string, ReadFamily>) =>
      [...families.values()].filter(({ name }) => !name.startsWith("nodejs_")).flatMap((f) => f.samples);
    assert.equal(series(after).length, series(before).length);
    assert.equal(crawled(after) - crawled(before), 600);
    assert.ok(total(after) < 1000);
  });

  test("are served at both paths, in both formats, for GET and HEAD", async () => {
    const accept = { accept: "application/openmetrics-text;version=1.0.0;q=0.6,text/plain;q=0.4,*/*;q=0.1" };
    for (const path of ["/metrics", "/debug/metrics/prometheus"]) {
      const url = `http://127.0.0.1:${host().http}${path}`;
      const open = await fetch(url, { headers: accept });
      assert.equal(open.headers.get("content-type"), "application/openmetrics-text; version=1.0.0; charset=utf-8");
      assert.equal(open.headers.get("cache-control"), "no-store");
      readExposition(await open.text(), "openmetrics");
      const head = await fetch(url, { method: "HEAD" });
      assert.deepEqual(
        [head.status, head.headers.get("content-type")],
        [200, "text/plain; version=0.0.4; charset=utf-8"],
      );
    }
    const posted = await fetch(`http://127.0.0.1:${host().http}/debug/metrics/prometheus`, { method: "POST" });
    assert.equal(posted.status, 200, "go-ipfs answers every method");
  });

  test("the metrics of process and event loop", async () => {
    const families = await scrape(host());
    for (const name of ["process_cpu_seconds_total", "process_resident_memory_bytes", "nodejs_heap_size_used_bytes"]) {
      assert.ok((sampleOf(families, name) ?? 0) > 0, name);
    }
    assert.ok((sampleOf(families, "nodejs_eventloop_active_seconds_total") ?? 0) > 0);
    assert.ok((sampleOf(families, "nodejs_eventloop_lag_max_seconds") ?? -1) >= 0);
    const [major, minor, patch] = process.versions.node.split(".") as [string, string, string];
    assert.equal(sampleOf(families, "nodejs_version_info", { version: process.version, major, minor, patch }), 1);
  });

  test("include the default metrics of prom-client, with their kinds and labels", async () => {
    const families = await scrape(host());
    for (const [line, labels = []] of promClient) {
      const [name = "", kind] = line.split(" ");
      const { type, samples = [] } = families.get(name) ?? {};
      assert.equal(type, kind, name);
      // There may be no garbage collection, and no request to libuv may be in progress.
      if (name === "nodejs_gc_duration_seconds" || name === "nodejs_active_requests") continue;
      assert.ok(samples.length > 0, name);
      for (const sample of samples) {
        assert.deepEqual(Object.keys(sample.labels), labels, name);
        assert.ok(Number.isFinite(sample.value) && sample.value >= 0, `${name} ${sample.value}`);
      }
    }
    const [pages = ""] = readFileSync("/proc/self/statm", "utf8").split(" ");
    const virtual = sampleOf(families, "process_virtual_memory_bytes") ?? 0;
    const pageSize = Number(execFileSync("getconf", ["PAGESIZE"], { encoding: "utf8" }));
    assert.ok(Math.abs(virtual / (Number(pages) * pageSize) - 1) < 0.5, "in pages of this system's size");
    assert.ok(sampleOf(families, "nodejs_heap_space_size_used_bytes", { space: "old" }), "spaces without _space");
  });

  test("include those of a module while it is loaded, and invalid ones prevent its load", async () => {
    assert.equal(sampleOf(await scrape(host()), "orders_total", { state: "paid" }), 3);
    await host().host.unload("orders");
    const families = await scrape(host());
    assert.equal(families.has("orders_total"), false);
    assert.equal(sampleOf(families, "modhost_module_changes_total", { module: "orders", change: "unload" }), 1);
    assert.deepEqual(host().host.residue("orders"), []);
  });

  test("show a quarantined module as not loaded, and count it", async () => {
    assert.throws(() => host().host.fire("break"));
    const families = await scrapeUntil((read) => sampleOf(read, "modhost_modules", { status: "quarantined" }) === 1);
    assert.equal(sampleOf(families, "modhost_module_up", { module: "fragile" }), 0);
  });

  test("leave out a module that fails to provide its own, which is logged once and counted", async () => {
    assert.equal(sampleOf(await scrape(host()), "faulty_things"), 5);
    for (const mode of ["throws", "hangs"]) {
      faulty.mode = mode;
      const families = await scrape(host());
      assert.deepEqual(families.get("faulty_things")?.samples, []);
      assert.ok(families.has("process_cpu_seconds_total"));
    }
    faulty.mode = "works";
    const families = await scrape(host());
    assert.equal(sampleOf(families, "faulty_things"), 5);
    assert.equal(sampleOf(families, "modhost_metrics_failures_total", { module: "faulty" }), 2);
    assert.equal(
      host()
        .log()
        .match(/cannot collect its metrics/g)?.length,
      1,
    );
  });

  test("are refused to strangers, proxies and foreign names, and a token gives access", async () => {
    const ask = async (headers: Record<string, string>) => {
      const { status, text } = await raw(host().http, headers);
      return [status, /403 Forbidden: (.*)/.exec(text)?.[1]];
    };
    assert.equal((await ask({ host: "localhost" }))[0], 200);
    assert.deepEqual(await ask({ host: "attacker.example" }), [
      403,
      "without a token, metrics are available at localhost, at addresses, and at the names of the option openmetrics_hosts",
    ]);
    const forwarded = "through a proxy, metrics require a token with the scope metrics";
    assert.deepEqual(await ask({ host: "localhost", "x-real-ip": "192.0.2.1" }), [403, forwarded]);
    assert.deepEqual(await ask({ host: "localhost", "x-forwarded-for": "192.0.2.1" }), [
      403,
      "metrics are available to the addresses of the option openmetrics_allow_ips, and with a token that has the scope metrics",
    ]);
    const wrong = "this token is not in the option openmetrics_tokens";
    assert.deepEqual(await ask({ host: "localhost", authorization: "Bearer no" }), [403, wrong]);
    const bearer = { authorization: `Bearer ${secret}` };
    assert.equal((await ask({ host: "attacker.example", "x-forwarded-for": "192.0.2.1", ...bearer }))[0], 200);
  });
});

async function raw(port: number, headers: Record<string, string>): Promise<{ status: number; text: string }> {
  const { request } = await import("node:http");
  return new Promise((resolve, reject) => {
    request({ port, host: "127.0.0.1", path: "/metrics", headers, agent: false }, async (response) => {
      const text = Buffer.concat(await response.toArray()).toString();
      resolve({ status: response.statusCode ?? 0, text });
    })
      .on("error", reject)
      .end();
  });
}

describe("while nobody reads metrics", () => {
  const plain = withHost({
    config: { modules_enabled: ["http"] },
    modules: {
      mod_quiet: (module: Module) => module.provides("metrics", createMetrics({ a: { kind: "gauge", help: "A" } })),
    },
  });

  test("metrics that nobody collects cause no warning", async () => {
    await delay(0);
    assert.doesNotMatch(plain().log(), /no loaded module takes/);
  });
});

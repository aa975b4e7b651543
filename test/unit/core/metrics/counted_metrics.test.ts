import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { createMetrics, metricFaults } from "#core/index.ts";
import type { MetricDeclarations } from "#core/types.ts";

describe("counted metrics", () => {
  test("count by labels as counters, gauges and histograms", () => {
    const metrics = createMetrics({
      shop_orders_total: { kind: "counter", help: "Orders", labels: ["state"] },
      shop_open: { kind: "gauge", help: "Open" },
      shop_wait_seconds: { kind: "histogram", unit: "seconds", help: "Wait", buckets: [1, 2] },
    });
    metrics.add("shop_orders_total", 2, "paid");
    metrics.series("shop_orders_total", "paid").add();
    metrics.set("shop_open", 7);
    for (const value of [0.5, 1, 1.5, 9]) metrics.observe("shop_wait_seconds", value);
    assert.deepEqual(
      [...metrics.collect()],
      [
        { name: "shop_orders_total", labels: { state: "paid" }, value: 3 },
        { name: "shop_open", labels: {}, value: 7 },
        { name: "shop_wait_seconds", labels: {}, value: { counts: [2, 1, 1], sum: 12 } },
      ],
    );
  });

  test("share one series beyond the maximum number, and can be removed", () => {
    const metrics = createMetrics({ a_total: { kind: "counter", help: "A", labels: ["b", "c"], max_series: 3 } });
    for (let at = 0; at < 50; at += 1) metrics.add("a_total", 1, `b${at}`, "c");
    const samples = [...metrics.collect()];
    assert.equal(samples.length, 4);
    assert.deepEqual(samples.at(-1), { name: "a_total", labels: { b: "other", c: "other" }, value: 47 });
    metrics.remove("a_total", "b0", "c");
    assert.equal([...metrics.collect()].length, 3);
  });

  test("are refused with every fault of a wrong declaration", () => {
    const wrong = {
      "no-name": { kind: "gauge", help: "x" },
      count: { kind: "counter", help: "x" },
      kindless: { help: "x" },
      speechless: { kind: "gauge" },
      time: { kind: "gauge", help: "x", unit: "seconds" },
      hist: { kind: "histogram", help: "x", buckets: [2, 1] },
      flat: { kind: "gauge", help: "x", buckets: [1] },
      labelled: { kind: "gauge", help: "x", labels: ["le", "a-b", "c", "c"] },
    } as unknown as MetricDeclarations;
    assert.deepEqual(metricFaults(wrong), [
      "no-name: a name may contain only letters, digits and underscores, and must not begin with a digit",
      "count: the name of a counter must end with _total",
      'kindless: kind must be "counter", "gauge" or "histogram"',
      "speechless: help must be a text",
      "time: the name must end with its unit, _seconds",
      "hist: buckets must be a list of ascending numbers",
      "flat: only a histogram can have buckets",
      "labelled: the label le is reserved for the server",
      "labelled: a-b is not a valid label name",
      "labelled: a label is listed twice",
    ]);
    assert.throws(() => createMetrics(wrong), { code: "METRICS_INVALID" });
    assert.throws(() => createMetrics({ a: { kind: "gauge", help: "x" } }).set("b" as "a", 1), TypeError);
  });

  test("treat missing labels as empty, and count in the same series afterwards", () => {
    const metrics = createMetrics({ seen_total: { kind: "counter", help: "x", labels: ["a", "b"] } });
    metrics.add("seen_total", 1, "one");
    metrics.add("seen_total", 1, "one");
    assert.deepEqual([...metrics.collect()], [{ name: "seen_total", labels: { a: "one", b: "" }, value: 2 }]);
  });
});

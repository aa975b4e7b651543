import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { contentTypes, expose, type Family, formatFor } from "#modules/mod_http_openmetrics/exposition.ts";
import { readExposition } from "#test/support/exposition.ts";

const families: Family[] = [
  {
    name: "a_total",
    declaration: { kind: "counter", help: 'Back\\slash, "quote"\nand line' },
    series: [{ labels: [["x", 'q"\\\n']], value: 3 }],
  },
  {
    name: "b_seconds",
    declaration: { kind: "histogram", help: "B", unit: "seconds", buckets: [0.5, 1] },
    series: [{ labels: [], value: { counts: [1, 2, 3], sum: 9.5 } }],
  },
  { name: "c", declaration: { kind: "gauge", help: "C" }, series: [{ labels: [], value: Number.POSITIVE_INFINITY }] },
];

describe("the text format", () => {
  test("Prometheus 0.0.4 has one line per sample, with help and type", () => {
    const text = expose(families, "prometheus");
    assert.equal(
      text,
      `# HELP a_total Back\\\\slash, "quote"\\nand line
# TYPE a_total counter
a_total{x="q\\"\\\\\\n"} 3
# HELP b_seconds B
# TYPE b_seconds histogram
b_seconds_bucket{le="0.5"} 1
b_seconds_bucket{le="1"} 3
b_seconds_bucket{le="+Inf"} 6
b_seconds_sum 9.5
b_seconds_count 6
# HELP c C
# TYPE c gauge
c +Inf
`,
    );
    const read = readExposition(text, "prometheus");
    assert.deepEqual(read.get("a_total")?.samples, [{ name: "a_total", labels: { x: 'q"\\\n' }, value: 3 }]);
  });

  test("OpenMetrics 1.0 has counters without their suffix, units, bounds as fractions, and an end", () => {
    const text = expose(families, "openmetrics");
    assert.match(text, /^# HELP a Back\\\\slash, \\"quote\\"\\nand line\n# TYPE a counter\na_total\{/);
    assert.match(text, /# UNIT b_seconds seconds\n/);
    assert.match(text, /le="1\.0"/);
    assert.ok(text.endsWith("# EOF\n"));
    readExposition(text, "openmetrics");
  });

  test("is chosen by the Accept header", () => {
    const prometheus =
      "application/openmetrics-text;version=1.0.0;q=0.6,application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=0.0.4;q=0.4,*/*;q=0.3";
    const choices: Record<string, string> = {
      "": "prometheus",
      "*/*": "prometheus",
      "text/plain": "prometheus",
      "application/openmetrics-text": "openmetrics",
      "application/openmetrics-text;q=0": "prometheus",
      "application/openmetrics-text;q=0.2, text/plain;q=0.5": "prometheus",
      [prometheus]: "openmetrics",
    };
    for (const [accept, format] of Object.entries(choices)) assert.equal(formatFor(accept), format, accept);
    assert.equal(contentTypes.prometheus, "text/plain; version=0.0.4; charset=utf-8");
  });
});

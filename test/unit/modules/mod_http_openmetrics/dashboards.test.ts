/** The dashboard and the alert rules only use metrics and labels that are declared. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, test } from "node:test";
import { nodeMetrics } from "modhost/node";
import { parse } from "yaml";
import { metricFaults } from "#core/index.ts";
import type { MetricDeclarations } from "#core/types.ts";
import { httpMetrics } from "#modules/mod_http/metrics.ts";
import { commandMetricDeclarations } from "#modules/mod_http_api/http/command_metrics.ts";
import { certificateMetrics } from "#modules/mod_http_openmetrics/certificates.ts";
import { moduleMetrics } from "#modules/mod_http_openmetrics/modules.ts";
import { gcMetrics, processMetrics } from "#modules/mod_http_openmetrics/process.ts";
import { requestMetrics } from "#modules/mod_http_openmetrics/requests.ts";

const rooms = {
  httpMetrics,
  certificateMetrics,
  commandMetrics: commandMetricDeclarations,
  moduleMetrics,
  gcMetrics,
  processMetrics,
  requestMetrics,
  nodeMetrics,
};
const declared: MetricDeclarations = Object.assign({}, ...Object.values(rooms));
/** The labels that Prometheus adds to each series. */
const scraped = ["instance", "job", "le"];

const read = (name: string) => readFileSync(new URL(`../../../../docs/operate/${name}`, import.meta.url), "utf8");

interface Rule {
  readonly alert: string;
  readonly expr: string;
}

const { groups } = parse(read("alerts.yml")) as { groups: { rules: Rule[] }[] };
const rules = groups.flatMap((group) => group.rules);
const { panels } = JSON.parse(read("grafana.json")) as { panels: { title: string; targets?: { expr: string }[] }[] };
const shown = panels.flatMap(({ title, targets = [] }) => targets.map(({ expr }) => ({ name: title, expr })));

/**
 * Returns the declaration of a metric that an expression names. Histograms occur with their
 * suffixes.
 */
function declarationOf(name: string) {
  const histogram = declared[name.replace(/_(?:bucket|sum|count)$/, "")];
  return declared[name] ?? (histogram?.kind === "histogram" ? histogram : undefined);
}

for (const { name, expr } of [...rules.map(({ alert, expr }) => ({ name: alert, expr })), ...shown]) {
  test(`the expression uses declared metrics: ${name}: ${expr.slice(0, 60)}`, () => {
    const names = expr.match(/\b(?:modhost|process|nodejs|ipfs)_[a-z0-9_]+/g) ?? [];
    assert.ok(names.length > 0 || expr.startsWith("up{"));
    const labels = new Set(scraped);
    for (const metric of names) {
      const declaration = declarationOf(metric);
      assert.ok(declaration !== undefined, `${metric} is declared`);
      for (const label of declaration.labels ?? []) labels.add(label);
    }
    const labelsUsed = [
      ...[...expr.matchAll(/\b(?:by|on) \(([^)]*)\)/g)].flatMap(([, list = ""]) => list.split(", ")),
      ...[...expr.matchAll(/[{,]\s*([a-z_]+)=~?"/g)].map(([, label = ""]) => label),
    ];
    for (const label of labelsUsed) assert.ok(labels.has(label), `${label} is a label of one of ${names.join(", ")}`);
  });
}

describe("the declarations of metrics", () => {
  for (const [room, metrics] of Object.entries(rooms)) {
    test(room, () => assert.deepEqual(metricFaults(metrics), []));
  }

  test("declare no name twice", () => {
    const names = Object.values(rooms).flatMap((metrics) => Object.keys(metrics));
    assert.deepEqual(
      names.filter((name, at) => names.indexOf(name) !== at),
      [],
    );
  });

  test("contain a promtool case for each alert", () => {
    const cases = read("alerts.test.yml");
    for (const { alert } of rules) assert.match(cases, new RegExp(`alertname: ${alert}\\b`), alert);
  });
});

import type {
  CountedMetrics,
  MetricDeclaration,
  MetricDeclarations,
  MetricKind,
  MetricSample,
  MetricSeries,
} from "../types.ts";
import { ModhostError } from "../util/errors.ts";
import { metricFaults } from "./faults.ts";

const MAX_SERIES = 1000;
/**
 * The value of all labels of the series that counts everything beyond the maximum number of series.
 */
const OTHER = "other";
/** Separates label values in a key; it does not occur in text for people. */
const SEPARATOR = "\u0000";

/**
 * Creates metrics that count as things happen, for `module.provides("metrics", ...)`.
 * @throws {ModhostError} METRICS_INVALID
 */
export function createMetrics<const D extends MetricDeclarations>(metrics: D): CountedMetrics<keyof D & string> {
  const faults = metricFaults(metrics);
  if (faults.length > 0) throw new ModhostError("METRICS_INVALID", { faults: faults.join("; ") });
  return new MetricSet(metrics);
}

class Series implements MetricSeries {
  readonly kind: MetricKind;
  readonly labels: readonly string[];
  readonly bounds: readonly number[];
  readonly counts: number[];
  value = 0;

  constructor({ kind, buckets = [] }: MetricDeclaration, labels: readonly string[]) {
    this.kind = kind;
    this.labels = labels;
    this.bounds = buckets;
    this.counts = kind === "histogram" ? new Array(buckets.length + 1).fill(0) : [];
  }

  add(by = 1): void {
    this.value += by;
  }

  set(value: number): void {
    this.value = value;
  }

  observe(value: number): void {
    const { bounds, counts } = this;
    let at = 0;
    while (at < bounds.length && value > (bounds[at] as number)) at += 1;
    counts[at] = (counts[at] as number) + 1;
    this.value += value;
  }
}

class Metric {
  readonly declaration: MetricDeclaration;
  readonly #series = new Map<string, Series>();

  constructor(declaration: MetricDeclaration) {
    this.declaration = declaration;
    // A metric without labels is shown with the value 0 before it counts anything.
    if ((declaration.labels ?? []).length === 0) this.series([]);
  }

  series(labels: readonly string[]): Series {
    const key = keyOf(labels);
    const known = this.#series.get(key);
    if (known !== undefined) return known;
    const { labels: names = [], max_series = MAX_SERIES } = this.declaration;
    const isFull = this.#series.size >= max_series && names.length > 0;
    const values = names.map((_, at) => (isFull ? OTHER : String(labels[at] ?? "")));
    // The series for further values may exist, as may one that was given without its last labels.
    const same = this.#series.get(keyOf(values));
    if (same !== undefined) return same;
    const series = new Series(this.declaration, values);
    this.#series.set(keyOf(values), series);
    return series;
  }

  remove(labels: readonly string[]): void {
    this.#series.delete(keyOf(labels));
  }

  *samples(name: string): Generator<MetricSample> {
    const { kind, labels: names = [] } = this.declaration;
    for (const { labels, counts, value } of this.#series.values()) {
      const fields = Object.fromEntries(names.map((label, at) => [label, labels[at] as string]));
      yield { name, labels: fields, value: kind === "histogram" ? { counts: [...counts], sum: value } : value };
    }
  }
}

function keyOf(labels: readonly string[]): string {
  return labels.length === 1 ? (labels[0] as string) : labels.join(SEPARATOR);
}

class MetricSet implements CountedMetrics {
  readonly metrics: MetricDeclarations;
  readonly #metrics = new Map<string, Metric>();

  constructor(metrics: MetricDeclarations) {
    this.metrics = metrics;
    for (const [name, declaration] of Object.entries(metrics)) this.#metrics.set(name, new Metric(declaration));
  }

  series(name: string, ...labels: string[]): Series {
    const metric = this.#metrics.get(name);
    if (metric === undefined) throw new TypeError(`The metric ${name} is not declared`);
    return metric.series(labels);
  }

  add(name: string, by = 1, ...labels: string[]): void {
    this.series(name, ...labels).add(by);
  }

  set(name: string, value: number, ...labels: string[]): void {
    this.series(name, ...labels).set(value);
  }

  observe(name: string, value: number, ...labels: string[]): void {
    this.series(name, ...labels).observe(value);
  }

  remove(name: string, ...labels: string[]): void {
    this.#metrics.get(name)?.remove(labels);
  }

  *collect(): Generator<MetricSample> {
    for (const [name, metric] of this.#metrics) yield* metric.samples(name);
  }
}

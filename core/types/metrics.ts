/** Figures that a module gives to whoever shows them: what `module.provides("metrics", ...)` takes. */

/** `counter` only grows, `gauge` is a value of now, `histogram` counts observations by their size. */
export type MetricKind = "counter" | "gauge" | "histogram";

/** What a metric is, declared once. */
export interface MetricDeclaration {
  readonly kind: MetricKind;
  /** One sentence for operators. */
  readonly help: string;
  /** The unit that the name ends in, before `_total`: "seconds", "bytes", "ratio". */
  readonly unit?: string;
  /** Names of its labels. Their values come from a small, fixed set: never a path, an id or anything that a client chooses. */
  readonly labels?: readonly string[];
  /** Of a histogram: upper bounds, ascending, without infinity. */
  readonly buckets?: readonly number[];
  /** What stands for a server of several processes: the sum of their values, or the greatest. Default "sum". */
  readonly processes?: "sum" | "max";
  /** Combinations of label values; those beyond share one whose labels are all "other". Default 1,000. */
  readonly max_series?: number;
}

/**
 * By name, in the form of Prometheus: letters, digits and underscores, begun with the name of your module; counters end in
 * `_total`.
 */
export type MetricDeclarations = Readonly<Record<string, MetricDeclaration>>;

/** What a histogram has counted. */
export interface HistogramValue {
  /** Observations by bucket, not summed up: one number for each bound, and one for what is above the last. */
  readonly counts: ArrayLike<number>;
  /** Of all that was observed. */
  readonly sum: number;
}

/** The value of one metric for one combination of label values. */
export interface MetricSample {
  readonly name: string;
  /** A value for each declared label. */
  readonly labels?: Readonly<Record<string, string>>;
  readonly value: number | HistogramValue;
}

/** What `module.provides("metrics", ...)` takes; `createFigures` makes one that counts by itself. */
export interface MetricsProvider {
  readonly metrics: MetricDeclarations;
  /** Called for each look at the figures: all there is, as it is now. */
  collect(): Iterable<MetricSample> | Promise<Iterable<MetricSample>>;
}

/** One series of a metric, held by whoever counts often. */
export interface MetricSeries {
  /** Adds to a counter or gauge. */
  add(by?: number): void;
  /** Sets a gauge. */
  set(value: number): void;
  /** Counts an observation in a histogram. */
  observe(value: number): void;
}

/** Metrics that are counted as things happen. Label values stand in the order of the declaration. */
export interface MetricFigures<Name extends string = string> extends MetricsProvider {
  /** Adds to a counter or gauge. */
  add(name: Name, by?: number, ...labels: string[]): void;
  /** Sets a gauge. */
  set(name: Name, value: number, ...labels: string[]): void;
  /** Counts an observation in a histogram. */
  observe(name: Name, value: number, ...labels: string[]): void;
  /** The series of these label values, to be held where looking it up each time would cost. */
  series(name: Name, ...labels: string[]): MetricSeries;
  collect(): Iterable<MetricSample>;
  /** Forgets a series, of something that is gone. */
  remove(name: Name, ...labels: string[]): void;
}

/** Metrics that a module publishes: the item of `module.provides("metrics", ...)`. */

/** `counter` only grows, `gauge` is a current value, `histogram` counts observations by size. */
export type MetricKind = "counter" | "gauge" | "histogram";

/** The declaration of one metric. */
export interface MetricDeclaration {
  readonly kind: MetricKind;
  /** One sentence for operators. */
  readonly help: string;
  /** The unit at the end of the name, before `_total`: "seconds", "bytes", "ratio". */
  readonly unit?: string;
  /**
   * Names of its labels. The values of a label must come from a small, fixed set: never a path, an
   * id or anything that a client chooses.
   */
  readonly labels?: readonly string[];
  /** For a histogram: upper bounds, ascending, without infinity. */
  readonly buckets?: readonly number[];
  /**
   * How the values of several processes are combined: their sum, or the greatest of them. Default
   * "sum".
   */
  readonly processes?: "sum" | "max";
  /**
   * Maximum number of combinations of label values. Further combinations share one whose labels are
   * all "other". Default 1,000.
   */
  readonly max_series?: number;
}

/**
 * Declarations by name, in the form of Prometheus: letters, digits and underscores, starting with
 * the name of your module; counters end in `_total`.
 */
export type MetricDeclarations = Readonly<Record<string, MetricDeclaration>>;

/** The counts of a histogram. */
export interface HistogramValue {
  /**
   * Observations per bucket, not cumulative: one number for each bound, and one for values above
   * the last.
   */
  readonly counts: ArrayLike<number>;
  /** The sum of all observations. */
  readonly sum: number;
}

/** The value of one metric for one combination of label values. */
export interface MetricSample {
  readonly name: string;
  /** A value for each declared label. */
  readonly labels?: Readonly<Record<string, string>>;
  readonly value: number | HistogramValue;
}

/**
 * The item of `module.provides("metrics", ...)`; `createMetrics` returns one that counts by itself.
 */
export interface MetricsProvider {
  readonly metrics: MetricDeclarations;
  /** Called for each scrape: returns all samples as they are now. */
  collect(): Iterable<MetricSample> | Promise<Iterable<MetricSample>>;
}

/** One series of a metric, for code that counts often. */
export interface MetricSeries {
  /** Adds to a counter or gauge. */
  add(by?: number): void;
  /** Sets a gauge. */
  set(value: number): void;
  /** Counts an observation in a histogram. */
  observe(value: number): void;
}

/**
 * Metrics that are counted as things happen. Label values are given in the order of the
 * declaration.
 */
export interface CountedMetrics<Name extends string = string> extends MetricsProvider {
  /** Adds to a counter or gauge. */
  add(name: Name, by?: number, ...labels: string[]): void;
  /** Sets a gauge. */
  set(name: Name, value: number, ...labels: string[]): void;
  /** Counts an observation in a histogram. */
  observe(name: Name, value: number, ...labels: string[]): void;
  /**
   * Returns the series of these label values; store it where looking it up each time would cost too
   * much.
   */
  series(name: Name, ...labels: string[]): MetricSeries;
  collect(): Iterable<MetricSample>;
  /** Removes the series of something that no longer exists. */
  remove(name: Name, ...labels: string[]): void;
}

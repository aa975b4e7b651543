/** Collects metrics from the providers of `module.provides("metrics")` on request. */
import { isDeepStrictEqual } from "node:util";
import { actAs, ModhostError, metricFaults, reasonOf } from "../../core/index.ts";
import type {
  HistogramValue,
  MetricDeclaration,
  MetricSample,
  MetricsProvider,
  Module,
  OwnedItem,
} from "../../core/types.ts";
import type { Family, Series } from "./exposition.ts";

type Provider = OwnedItem<MetricsProvider>;

/** The metrics of one provider. */
interface Collected {
  readonly metrics: MetricsProvider["metrics"];
  /** The virtual host of its module. */
  readonly host: string;
  readonly samples: readonly MetricSample[];
}

/** Metrics of other processes of the server. */
export interface MetricsSource {
  collect(): Promise<readonly Collected[]>;
}

/** The current providers. */
export class Registry {
  readonly #providers = new Set<Provider>();
  readonly #sources = new Set<MetricsSource>();
  readonly #timeout: number;
  /** Providers whose failure was logged. */
  readonly #failing = new WeakSet<Provider>();
  readonly #failed: (module: string) => void;

  /** `timeout` is in seconds. `failed` is called each time a module provides no metrics. */
  constructor(timeout: number, failed: (module: string) => void) {
    this.#timeout = timeout;
    this.#failed = failed;
  }

  /** @throws {ModhostError} METRICS_INVALID. Its module is then not loaded */
  add(provider: Provider): void {
    const { item, owner } = provider;
    const faults = metricFaults(item.metrics);
    if (typeof item.collect !== "function") faults.push("collect must be a function");
    if (faults.length === 0) {
      for (const other of this.#providers) {
        if (isSameModule(other.owner, owner)) continue;
        for (const name of clashes(item, other.item)) faults.push(`${name} is already declared by ${other.owner.name}`);
      }
    }
    if (faults.length > 0) throw new ModhostError("METRICS_INVALID", { faults: faults.join("; ") });
    this.#providers.add(provider);
  }

  /** Adds a source until the returned function is called. */
  addSource(source: MetricsSource): () => void {
    this.#sources.add(source);
    return () => void this.#sources.delete(source);
  }

  remove(provider: Provider): void {
    this.#providers.delete(provider);
  }

  /** Resolves to all current metrics by name. A module that fails or takes too long is left out. */
  async collect(): Promise<Family[]> {
    const pending = this.#current().map((provider) => this.#ask(provider));
    const source = [...this.#sources].map((each) => within(this.#timeout, () => each.collect()).catch(() => []));
    const collected = [...(await Promise.all(pending)), ...(await Promise.all(source)).flat()];
    const families = new Map<string, { declaration: MetricDeclaration; series: Map<string, Series> }>();
    for (const { metrics, host, samples } of collected) {
      for (const [name, declaration] of Object.entries(metrics)) {
        if (!families.has(name)) families.set(name, { declaration, series: new Map() });
      }
      for (const { name, labels = {}, value } of samples) {
        const declaration = Object.hasOwn(metrics, name) ? metrics[name] : undefined;
        if (declaration === undefined) continue;
        const names = declaration.labels ?? [];
        const own = names.map((label) => [label, String(labels[label] ?? "")] as const);
        const shown = host === "*" ? own : [["host", host] as const, ...own];
        const series = families.get(name)?.series as Map<string, Series>;
        const key = JSON.stringify(shown);
        const known = series.get(key);
        series.set(key, {
          labels: shown,
          value: known === undefined ? value : merged(known.value, value, declaration),
        });
      }
    }
    return [...families]
      .map(([name, { declaration, series }]) => ({ name, declaration, series: [...series.values()] }))
      .sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  /** While a module is being reloaded, only the provider of its next instance counts. */
  #current(): Provider[] {
    const all = [...this.#providers];
    return all.filter(({ owner }) => all.findLast((other) => isSameModule(other.owner, owner))?.owner === owner);
  }

  async #ask(provider: Provider): Promise<Collected> {
    const { owner, item } = provider;
    try {
      const samples = await within(this.#timeout, () => actAs(owner, () => item.collect()));
      this.#failing.delete(provider);
      return { metrics: item.metrics, host: owner.host, samples: [...samples] };
    } catch (error) {
      this.#failed(owner.name);
      if (!this.#failing.has(provider)) warn(owner, error);
      this.#failing.add(provider);
      return { metrics: item.metrics, host: owner.host, samples: [] };
    }
  }
}

const isSameModule = (a: Module, b: Module) => a.name === b.name && a.host === b.host;

function warn(owner: Module, error: unknown): void {
  owner.log.warn("cannot collect its metrics, which are left out for now: %s", reasonOf(error));
}

/**
 * Returns the names of metrics that both providers declare, but differently. Compares counters
 * without `_total`, which is not part of their name in OpenMetrics.
 */
function clashes(own: MetricsProvider, other: MetricsProvider): string[] {
  const taken = new Map(Object.entries(other.metrics).map(([name, each]) => [family(name, each), { name, each }]));
  return Object.entries(own.metrics).flatMap(([name, each]) => {
    const found = taken.get(family(name, each));
    return found === undefined || (found.name === name && isDeepStrictEqual(found.each, each)) ? [] : [name];
  });
}

const family = (name: string, { kind }: MetricDeclaration) => (kind === "counter" ? name.replace(/_total$/, "") : name);

/** Merges values of two instances of one module, or of two processes. */
function merged(a: Series["value"], b: Series["value"], { processes }: MetricDeclaration): Series["value"] {
  if (processes === "max") return Math.max(Number(a), Number(b));
  if (typeof a === "number" || typeof b === "number") return Number(a) + Number(b);
  return {
    counts: Array.from(a.counts, (count, at) => count + ((b as HistogramValue).counts[at] ?? 0)),
    sum: a.sum + b.sum,
  };
}

async function within<T>(seconds: number, work: () => T | Promise<T>): Promise<T> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(new Error(`nothing came within ${seconds} s`)), seconds * 1000);
  try {
    return await Promise.race([work(), late.promise]);
  } finally {
    clearTimeout(timer);
  }
}

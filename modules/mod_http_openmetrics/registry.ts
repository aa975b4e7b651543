/** What modules give to `module.provides("metrics")`, gathered when somebody looks. */
import { isDeepStrictEqual } from "node:util";
import { ModhostError, metricFaults, reasonOf } from "../../core/index.ts";
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

/** What one provider has given. */
interface Collected {
  readonly metrics: MetricsProvider["metrics"];
  /** The virtual host of its module. */
  readonly host: string;
  readonly samples: readonly MetricSample[];
}

/** Figures of other processes of the server. */
export interface FiguresElsewhere {
  collect(): Promise<readonly Collected[]>;
}

/** The providers that are there now. */
export class Registry {
  readonly #providers = new Set<Provider>();
  readonly #elsewhere = new Set<FiguresElsewhere>();
  readonly #timeout: number;
  /** Providers whose failure was told. */
  readonly #failing = new WeakSet<Provider>();
  readonly #failed: (module: string) => void;

  /** `timeout` in seconds; `failed` hears of each look at which a module gave nothing. */
  constructor(timeout: number, failed: (module: string) => void) {
    this.#timeout = timeout;
    this.#failed = failed;
  }

  /** @throws {ModhostError} METRICS_INVALID: its module is not loaded then */
  add(provider: Provider): void {
    const { item, owner } = provider;
    const faults = metricFaults(item.metrics);
    if (typeof item.collect !== "function") faults.push("collect is a function");
    if (faults.length === 0) {
      for (const other of this.#providers) {
        if (isSameModule(other.owner, owner)) continue;
        for (const name of clashes(item, other.item)) faults.push(`${name} is declared by ${other.owner.name} already`);
      }
    }
    if (faults.length > 0) throw new ModhostError("METRICS_INVALID", { faults: faults.join("; ") });
    this.#providers.add(provider);
  }

  /** Until what is returned is called. */
  beside(elsewhere: FiguresElsewhere): () => void {
    this.#elsewhere.add(elsewhere);
    return () => void this.#elsewhere.delete(elsewhere);
  }

  remove(provider: Provider): void {
    this.#providers.delete(provider);
  }

  /** All figures as they are now, by name. A module that fails to give its own, or takes too long, is left out. */
  async collect(): Promise<Family[]> {
    const asked = this.#current().map((provider) => this.#ask(provider));
    const elsewhere = [...this.#elsewhere].map((each) => within(this.#timeout, () => each.collect()).catch(() => []));
    const collected = [...(await Promise.all(asked)), ...(await Promise.all(elsewhere)).flat()];
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

  /** Of a module that is being reloaded, those of the next instance. */
  #current(): Provider[] {
    const all = [...this.#providers];
    return all.filter(({ owner }) => all.findLast((other) => isSameModule(other.owner, owner))?.owner === owner);
  }

  async #ask(provider: Provider): Promise<Collected> {
    const { owner, item } = provider;
    try {
      const samples = await within(this.#timeout, () => item.collect());
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
  owner.log.warn("its figures are left out until it gives them again: %s", reasonOf(error));
}

/** Names that stand for different things; in OpenMetrics a counter has its name without `_total`. */
function clashes(own: MetricsProvider, other: MetricsProvider): string[] {
  const taken = new Map(Object.entries(other.metrics).map(([name, each]) => [family(name, each), { name, each }]));
  return Object.entries(own.metrics).flatMap(([name, each]) => {
    const found = taken.get(family(name, each));
    return found === undefined || (found.name === name && isDeepStrictEqual(found.each, each)) ? [] : [name];
  });
}

const family = (name: string, { kind }: MetricDeclaration) => (kind === "counter" ? name.replace(/_total$/, "") : name);

/** Of two instances of one module, or of two processes. */
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

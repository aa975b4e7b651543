/** What a changed configuration makes of a running host: a plan, from facts alone. */
import type { Config } from "../config/index.ts";
import type { Wanted } from "../module/catalog.ts";
import { type InstanceFacts, keyOf } from "../module/instance.ts";
import { labelOf } from "../module/operation.ts";
import type { TransitionSteps } from "../module/transition.ts";
import type { PortsDifference } from "../ports/change.ts";
import type { ConfigPlan, ModuleState, ModuleStep, PortStep } from "../types.ts";
import { type Difference, differences, isReader, shown } from "./differences.ts";

/** What is known when a plan is made. */
export interface PlanFacts {
  /** What is in force. */
  readonly former: Config;
  readonly next: Config;
  /** In the order of loading. */
  readonly live: readonly InstanceFacts[];
  /** What did not load, or is in quarantine. */
  readonly failed: readonly Pick<ModuleState, "name" | "host" | "status" | "note">[];
  /** Modules that somebody loaded while the host runs: they stay, whatever the configuration says. */
  readonly asked: ReadonlySet<string>;
  /** What each configuration wants, host by host. */
  readonly wanted: { readonly former: readonly Wanted[]; readonly next: readonly Wanted[] };
  /** Modules whose code is evaluated anew, and why. */
  readonly moved: ReadonlyMap<string, string>;
  isDisabled(name: string, host: string): boolean;
  readonly ports: readonly PortsDifference[];
  /** Names that have a certificate, and are to have another one. */
  readonly certificates: readonly string[];
}

/** A plan for people, and the same for what carries it out. */
export interface Plan {
  readonly plan: ConfigPlan;
  readonly steps: TransitionSteps;
  /** Names of the options whose new values are in force afterwards. */
  readonly changed: readonly string[];
}

export function planOf(facts: PlanFacts): Plan {
  const { former, next, live } = facts;
  const found = differences(former, next);
  const hosts = {
    added: next.hosts().filter((host) => !former.hosts().includes(host)),
    removed: former.hosts().filter((host) => !next.hosts().includes(host)),
  };
  const areHostsOther = hosts.added.length > 0 || hosts.removed.length > 0;
  const all: Difference[] = [...found, ...(areHostsOther ? [hostsDifference] : [])];
  const isRead = (instance: InstanceFacts, difference: Difference) => isReader(instance, difference, former, next);
  const kept = keptOf(facts);
  const unload = live.filter(({ key }) => !kept.has(key));
  const load = loadsOf(facts, kept);
  const became = live.filter(({ key }) => kept.has(key)).map((instance) => effectOn(instance, all, isRead, facts));
  const exchanged = withDependants(became, kept);
  const told = became.filter(({ instance, told }) => told.length > 0 && !exchanged.has(instance.key));
  const changed = [...new Set(all.filter(({ applies }) => applies !== "start").map(({ name }) => name))];
  const waiting = [...new Set(found.filter(({ applies }) => applies === "start").map(({ name }) => name))];
  const failed = facts.failed.filter(({ name }) => !load.some((wanted) => wanted.name === name));
  const isWanted = (name: string) => facts.wanted.next.some((wanted) => wanted.name === name);
  const { certificates } = facts;
  const isEmpty = [all, load, [...exchanged], told, unload, facts.ports, certificates].every(
    ({ length }) => length === 0,
  );
  // A configuration in which nothing differs tries nothing again.
  const retry = isEmpty ? [] : retriesOf(facts, failed);
  const steps: ModuleStep[] = [
    ...load.map(({ name, host }) => step("load", { name, host }, [reasonToLoad({ name, host }, facts)])),
    ...[...exchanged].map(([key, because]) => step("exchange", kept.get(key) as InstanceFacts, because)),
    ...told.map(({ instance, told: because }) => step("tell", instance, because)),
    ...unload.map((instance) => step("unload", instance, [reasonToGo(instance, facts)])),
    ...retry.map(({ wanted, because }) => step("retry", wanted, [because])),
  ];
  return {
    plan: {
      config: next.file,
      isEmpty,
      options: found.map((difference) => ({
        name: difference.name,
        host: difference.host,
        ...shown(difference, former, next),
        applies: difference.applies === "start" ? "start" : "now",
        readers: live.filter((instance) => isRead(instance, difference)).map(labelOf),
      })),
      hosts,
      modules: steps,
      ports: portSteps(facts.ports),
      certificates,
      waiting,
    },
    steps: {
      load,
      retry: retry.map(({ wanted }) => wanted),
      exchange: new Set([...exchanged.keys()]),
      unload: new Set(unload.map(({ key }) => key)),
      tell: new Map(told.map(({ instance, told: options }) => [instance.key, options])),
      moved: new Set(
        [...facts.moved.keys()].filter((name) => [...kept.values()].some((instance) => instance.name === name)),
      ),
      forget: failed.map(({ name }) => name).filter((name) => !isWanted(name)),
    },
    changed,
  };
}

function portSteps(differing: readonly PortsDifference[]): PortStep[] {
  return differing.flatMap(({ service, opened, closed, bound }) => [
    ...opened.map(({ address, port }) => ({ action: "open" as const, service, address, port })),
    ...closed.map(({ address, port }, at) => ({ action: "close" as const, service, address, port: bound[at] ?? port })),
  ]);
}

/** The names of the hosts, as modules read them. */
const hostsDifference: Difference = {
  name: "hosts",
  host: "*",
  from: undefined,
  to: undefined,
  applies: "live",
  owner: "core",
};

interface Effect {
  readonly instance: InstanceFacts;
  /** Reasons for a new instance. */
  readonly exchange: readonly string[];
  /** Names of options that it is told of. */
  readonly told: readonly string[];
}

/** What the differences are to one instance. */
function effectOn(
  instance: InstanceFacts,
  all: readonly Difference[],
  isRead: (instance: InstanceFacts, difference: Difference) => boolean,
  { moved, next, wanted }: PlanFacts,
): Effect {
  const exchange = new Set<string>();
  const told = new Set<string>();
  for (const difference of all) {
    const { name, applies, owner } = difference;
    const isOwn = applies === "live" && owner === instance.name;
    if (applies === "start" || !(isOwn || isRead(instance, difference))) continue;
    if (applies === "live" && instance.isTold) told.add(name);
    else if (!isOwn) exchange.add(name);
  }
  const reason = moved.get(instance.name);
  if (reason !== undefined) exchange.add(reason);
  if (instance.views !== undefined) {
    const after = next
      .hosts()
      .filter((host) => wanted.next.some((one) => one.name === instance.name && one.host === host));
    if (!new Set(after).symmetricDifference(new Set(instance.views)).isSubsetOf(new Set())) exchange.add("hosts");
  }
  return { instance, exchange: [...exchange], told: [...told] };
}

/** By key, in the order of loading: those that are exchanged, and those that depend on them. */
function withDependants(became: readonly Effect[], kept: ReadonlyMap<string, InstanceFacts>): Map<string, string[]> {
  const found = new Map<string, string[]>();
  for (const { instance, exchange } of became) if (exchange.length > 0) found.set(instance.key, [...exchange]);
  for (let size = -1; size < found.size; ) {
    size = found.size;
    for (const { key, depends } of kept.values()) {
      const reached = [...depends].filter((other) => found.has(other));
      if (reached.length > 0 && !found.has(key)) {
        found.set(key, [
          `it depends on ${reached.map((other) => labelOf(kept.get(other) as InstanceFacts)).join(", ")}`,
        ]);
      }
    }
  }
  return found;
}

/** Those that stay: what is wanted, or was asked for, and what these depend on. */
function keptOf(facts: PlanFacts): Map<string, InstanceFacts> {
  const { live, next, wanted, asked } = facts;
  const byKey = new Map(live.map((instance) => [instance.key, instance]));
  const isIn = (list: readonly Wanted[], { name, host }: InstanceFacts) =>
    list.some((one) => one.name === name && (host === "*" || one.host === host));
  const hosts = next.hosts().length === 0 ? ["*"] : next.hosts();
  const hasPlace = ({ host, isGlobal }: InstanceFacts) => isGlobal || hosts.includes(host);
  const isGone = ({ name, host }: InstanceFacts): boolean => facts.isDisabled(name, host);
  const kept = new Map<string, InstanceFacts>();
  const reach = (instance: InstanceFacts, reached: Set<InstanceFacts>): boolean => {
    if (reached.has(instance)) return true;
    if (isGone(instance)) return false;
    reached.add(instance);
    return [...instance.depends].every((key) => {
      const dependency = byKey.get(key);
      return dependency === undefined || reach(dependency, reached);
    });
  };
  for (const instance of live) {
    const isRoot = hasPlace(instance) && (isIn(wanted.next, instance) || asked.has(instance.name));
    const reached = new Set<InstanceFacts>();
    if (isRoot && reach(instance, reached)) for (const each of reached) kept.set(each.key, each);
  }
  return new Map(live.filter(({ key }) => kept.has(key)).map((instance) => [instance.key, instance]));
}

/** What is wanted now and was not, or has lost its place. */
function loadsOf({ live, wanted }: PlanFacts, kept: ReadonlyMap<string, InstanceFacts>): Wanted[] {
  return wanted.next.filter(({ name, host }) => {
    if (kept.has(keyOf(name, host)) || kept.has(keyOf(name, "*"))) return false;
    const isNew = !wanted.former.some((other) => other.name === name && other.host === host);
    return isNew || live.some((instance) => instance.name === name && !kept.has(instance.key));
  });
}

/** What is wanted and is not there, though it was tried: what it says of itself is the reason. */
function retriesOf(
  { live, wanted, former: inForce, next }: PlanFacts,
  failed: PlanFacts["failed"],
): { wanted: Wanted; because: string }[] {
  const keys = new Set(live.map(({ key }) => key));
  return wanted.next.flatMap((one) => {
    const { name, host } = one;
    const tried = failed.find((other) => other.name === name && [host, "*"].includes(other.host));
    if (tried === undefined || keys.has(keyOf(name, host)) || keys.has(keyOf(name, "*"))) return [];
    const state = tried.status === "quarantined" ? "it is in quarantine" : "it did not load";
    const because = tried.note === undefined ? state : `${state}: ${tried.note}`;
    return { wanted: one, because: inForce.mask(next.mask(because)) };
  });
}

function reasonToLoad({ name, host }: Wanted, { live }: PlanFacts): string {
  const same = live.filter((instance) => instance.name === name);
  if (same.length === 0) return "modules_enabled";
  // It would lose its place to a dependency that is disabled, and cannot be loaded without it.
  return same.some((instance) => instance.host === host) ? "it depends on what is in modules_disabled" : "hosts";
}

function reasonToGo({ name, host }: InstanceFacts, { isDisabled, next, wanted }: PlanFacts): string {
  if (isDisabled(name, host)) return "modules_disabled";
  if (wanted.next.some((one) => one.name === name)) {
    return host === "*" || !next.hosts().includes(host) ? "hosts" : "modules_enabled";
  }
  return wanted.former.some((one) => one.name === name) ? "modules_enabled" : "nothing depends on it";
}

function step(
  action: ModuleStep["action"],
  { name, host }: { name: string; host: string },
  because: readonly string[],
): ModuleStep {
  return { action, module: name, host, because };
}

/** Plans how a changed configuration affects a running host, from facts alone. */
import { type Config, shownValue } from "../config/index.ts";
import type { Wanted } from "../module/catalog.ts";
import { type InstanceFacts, keyOf } from "../module/instance.ts";
import { labelOf } from "../module/operation.ts";
import type { TransitionSteps } from "../module/transition.ts";
import { permissionChanges, settingChanges } from "../permissions/index.ts";
import type { PortsDifference } from "../ports/change.ts";
import type { ConfigPlan, InstalledChange, ModuleState, ModuleStep, OptionChange, PortStep } from "../types.ts";
import { type Difference, differences, isReader, shown } from "./differences.ts";

/** The facts that a plan is made from. */
export interface PlanFacts {
  /** The configuration in force. */
  readonly previous: Config;
  readonly next: Config;
  /** Live instances in the order of loading. */
  readonly live: readonly InstanceFacts[];
  /** Modules that failed to load or are quarantined. */
  readonly failed: readonly Pick<ModuleState, "name" | "host" | "status" | "note">[];
  /**
   * Modules that somebody loaded while the host runs: they stay, whatever the configuration says.
   */
  readonly requested: ReadonlySet<string>;
  /** The modules that each configuration enables, host by host. */
  readonly wanted: { readonly previous: readonly Wanted[]; readonly next: readonly Wanted[] };
  /** Modules whose code is evaluated again, with the reasons. */
  readonly moved: ReadonlyMap<string, string>;
  isDisabled(name: string, host: string): boolean;
  readonly ports: readonly PortsDifference[];
  /** Names that have a certificate and will get another one. */
  readonly certificates: readonly string[];
}

/** A plan for people, and its steps for the transition. */
export interface Plan {
  readonly plan: ConfigPlan;
  readonly steps: TransitionSteps;
  /** Names of the options whose new values are in force afterwards. */
  readonly changed: readonly string[];
  /** Whether a module that was loaded before is neither wanted nor loaded afterwards. */
  isGone(name: string): boolean;
}

export function planOf(facts: PlanFacts): Plan {
  const { previous, next, live } = facts;
  const found = differences(previous, next);
  const hosts = {
    added: next.hosts().filter((host) => !previous.hosts().includes(host)),
    removed: previous.hosts().filter((host) => !next.hosts().includes(host)),
  };
  const areHostsOther = hosts.added.length > 0 || hosts.removed.length > 0;
  const all: Difference[] = [...found, ...(areHostsOther ? [hostsDifference] : [])];
  const isRead = (instance: InstanceFacts, difference: Difference) => isReader(instance, difference, previous, next);
  const staying = stayingIn(facts);
  const unload = live.filter(({ key }) => !staying.has(key));
  const load = loadsOf(facts, staying);
  const became = live.filter(({ key }) => staying.has(key)).map((instance) => effectOn(instance, all, isRead, facts));
  const exchanged = withDependants(became, staying);
  const notified = became.filter(({ instance, notified }) => notified.length > 0 && !exchanged.has(instance.key));
  const changed = [...new Set(all.filter(({ applies }) => applies !== "start").map(({ name }) => name))];
  const waiting = [...new Set(found.filter(({ applies }) => applies === "start").map(({ name }) => name))];
  const failed = facts.failed.filter(({ name }) => !load.some((wanted) => wanted.name === name));
  const isWanted = (name: string) => facts.wanted.next.some((wanted) => wanted.name === name);
  const { certificates } = facts;
  const installed = installedChanges(previous, next);
  const isEmpty = [all, installed, load, [...exchanged], notified, unload, facts.ports, certificates].every(
    ({ length }) => length === 0,
  );
  // If nothing differs, failed modules are not retried either.
  const retry = isEmpty ? [] : retriesOf(facts, failed);
  const steps: ModuleStep[] = [
    ...load.map(({ name, host }) => step("load", { name, host }, [reasonToLoad({ name, host }, facts)])),
    ...[...exchanged].map(([key, because]) => step("exchange", staying.get(key) as InstanceFacts, because)),
    ...notified.map(({ instance, notified: because }) => step("tell", instance, because)),
    ...unload.map((instance) => step("unload", instance, [reasonToGo(instance, facts)])),
    ...retry.map(({ wanted, because }) => step("retry", wanted, [because])),
  ];
  return {
    plan: {
      config: next.file,
      isEmpty,
      options: found.flatMap((difference) => {
        if (difference.name === MODULES) return settingsIn(difference, live);
        return {
          name: difference.name,
          host: difference.host,
          ...shown(difference, previous, next),
          applies: difference.applies === "start" ? "start" : "now",
          readers: live.filter((instance) => isRead(instance, difference)).map(labelOf),
        };
      }),
      permissions: found.filter(({ name }) => name === MODULES).flatMap(({ from, to }) => permissionChanges(from, to)),
      installed,
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
      notify: new Map(notified.map(({ instance, notified: options }) => [instance.key, options])),
      moved: new Set(
        [...facts.moved.keys()].filter((name) => [...staying.values()].some((instance) => instance.name === name)),
      ),
      forget: failed.map(({ name }) => name).filter((name) => !isWanted(name)),
    },
    changed,
    isGone: (name) =>
      name !== "core" && !isWanted(name) && ![...staying.values()].some((instance) => instance.name === name),
  };
}

/**
 * Returns the differences between the modules in `modules.lock`; `tree` is the hash of the files.
 */
function installedChanges({ installed: previous }: Config, { installed: next }: Config): InstalledChange[] {
  const names = [...new Set([...previous.keys(), ...next.keys()])].sort();
  return names
    .filter((name) => previous.get(name)?.tree !== next.get(name)?.tree)
    .map((module) => ({ module, from: previous.get(module)?.version, to: next.get(module)?.version }));
}

/** The option with the settings of single modules. */
const MODULES = "modules";

/** Returns one change for each setting of a module. Permissions are listed separately. */
function settingsIn({ from, to }: Difference, live: readonly InstanceFacts[]): OptionChange[] {
  const text = (value: unknown) => (value === undefined ? undefined : shownValue(undefined, value));
  return settingChanges(from, to).map(({ module, field, from: previous, to: next }) => ({
    name: `${MODULES}.${module}.${field}`,
    host: "*",
    from: text(previous),
    to: text(next),
    applies: "now",
    readers: live.filter(({ name }) => name === module).map(labelOf),
  }));
}

function portSteps(differing: readonly PortsDifference[]): PortStep[] {
  return differing.flatMap(({ service, opened, closed, bound }) => [
    ...opened.map(({ address, port }) => ({ action: "open" as const, service, address, port })),
    ...closed.map(({ address, port }, at) => ({ action: "close" as const, service, address, port: bound[at] ?? port })),
  ]);
}

/** The change of the host names, as modules read them. */
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
  /** Reasons to replace the instance. */
  readonly exchange: readonly string[];
  /** Names of the changed options that the instance is notified of. */
  readonly notified: readonly string[];
}

/** Returns how the differences affect one instance. */
function effectOn(
  instance: InstanceFacts,
  all: readonly Difference[],
  isRead: (instance: InstanceFacts, difference: Difference) => boolean,
  { moved, next, wanted }: PlanFacts,
): Effect {
  const exchange = new Set<string>();
  const notified = new Set<string>();
  for (const difference of all) {
    const { name, applies, owner } = difference;
    const isOwn = applies === "live" && owner === instance.name;
    if (applies === "start" || !(isOwn || isRead(instance, difference))) continue;
    if (applies === "live" && instance.handlesChanges) notified.add(name);
    else if (!isOwn) exchange.add(name);
  }
  const reason = moved.get(instance.name);
  if (reason !== undefined) exchange.add(reason);
  if (instance.views !== undefined) {
    const keys = keysOf(wanted.next);
    const after = next.hosts().filter((host) => keys.has(keyOf(instance.name, host)));
    if (!new Set(after).symmetricDifference(new Set(instance.views)).isSubsetOf(new Set())) exchange.add("hosts");
  }
  return { instance, exchange: [...exchange], notified: [...notified] };
}

/**
 * Returns, by key in the order of loading, the instances that are replaced and those that depend on
 * them.
 */
function withDependants(became: readonly Effect[], staying: ReadonlyMap<string, InstanceFacts>): Map<string, string[]> {
  const found = new Map<string, string[]>();
  for (const { instance, exchange } of became) if (exchange.length > 0) found.set(instance.key, [...exchange]);
  for (let size = -1; size < found.size; ) {
    size = found.size;
    for (const { key, depends } of staying.values()) {
      const reached = [...depends].filter((other) => found.has(other));
      if (reached.length > 0 && !found.has(key)) {
        found.set(key, [
          `it depends on ${reached.map((other) => labelOf(staying.get(other) as InstanceFacts)).join(", ")}`,
        ]);
      }
    }
  }
  return found;
}

/**
 * Returns the instances that stay: those that are enabled or were requested, and their
 * dependencies.
 */
function stayingIn(facts: PlanFacts): Map<string, InstanceFacts> {
  const { live, next, wanted, requested } = facts;
  const byKey = new Map(live.map((instance) => [instance.key, instance]));
  const names = new Set(wanted.next.map(({ name }) => name));
  const keys = keysOf(wanted.next);
  const isWanted = ({ name, host, key }: InstanceFacts) => (host === "*" ? names.has(name) : keys.has(key));
  const hosts = new Set(next.hosts().length === 0 ? ["*"] : next.hosts());
  const hasHost = ({ host, isGlobal }: InstanceFacts) => isGlobal || hosts.has(host);
  const isGone = ({ name, host }: InstanceFacts): boolean => facts.isDisabled(name, host);
  const staying = new Map<string, InstanceFacts>();
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
    const isRoot = hasHost(instance) && (isWanted(instance) || requested.has(instance.name));
    const reached = new Set<InstanceFacts>();
    if (isRoot && reach(instance, reached)) for (const each of reached) staying.set(each.key, each);
  }
  return new Map(live.filter(({ key }) => staying.has(key)).map((instance) => [instance.key, instance]));
}

/** Returns the modules to load: newly enabled ones, and those whose instances are unloaded. */
function loadsOf({ live, wanted }: PlanFacts, staying: ReadonlyMap<string, InstanceFacts>): Wanted[] {
  const previous = keysOf(wanted.previous);
  const leaving = new Set(live.filter(({ key }) => !staying.has(key)).map(({ name }) => name));
  return wanted.next.filter(({ name, host }) => {
    if (staying.has(keyOf(name, host)) || staying.has(keyOf(name, "*"))) return false;
    return !previous.has(keyOf(name, host)) || leaving.has(name);
  });
}

const keysOf = (wanted: readonly Wanted[]) => new Set(wanted.map(({ name, host }) => keyOf(name, host)));

/** Returns the enabled modules that failed, to be retried; the reason is their note. */
function retriesOf(
  { live, wanted, previous: inForce, next }: PlanFacts,
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

function reasonToLoad({ name, host }: Wanted, { live, next }: PlanFacts): string {
  const same = live.filter((instance) => instance.name === name);
  if (same.length === 0) return next.installed.has(name) ? "modules.lock" : "modules_enabled";
  // The loaded instance depends on a disabled module, so it is unloaded; loading it again fails and
  // reports that.
  return same.some((instance) => instance.host === host) ? "it depends on a disabled module" : "hosts";
}

function reasonToGo({ name, host }: InstanceFacts, { isDisabled, previous, next, wanted }: PlanFacts): string {
  if (isDisabled(name, host)) return "modules_disabled";
  if (previous.installed.has(name) && !next.installed.has(name)) return "modules.lock";
  if (wanted.next.some((one) => one.name === name)) {
    return host === "*" || !next.hosts().includes(host) ? "hosts" : "modules_enabled";
  }
  return wanted.previous.some((one) => one.name === name) ? "modules_enabled" : "nothing depends on it";
}

function step(
  action: ModuleStep["action"],
  { name, host }: { name: string; host: string },
  because: readonly string[],
): ModuleStep {
  return { action, module: name, host, because };
}

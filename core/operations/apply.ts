/** Applies a changed configuration while the host runs: completely, or not at all. */
import type { Config, UnknownName } from "../config/index.ts";
import type { Catalog } from "../module/catalog.ts";
import type { ModuleCode } from "../module/code.ts";
import type { Modules } from "../module/lifecycle.ts";
import type { Ports } from "../ports/ports.ts";
import { servesHttps } from "../ports/service.ts";
import type { CertificatesOptions } from "../tls/index.ts";
import type { CertificateState, ConfigPlan } from "../types.ts";
import { ModhostError, reasonOf } from "../util/errors.ts";
import type { Log } from "../util/log.ts";
import type { Progress } from "./change.ts";
import { type Plan, planOf } from "./plan.ts";
import { planLines } from "./plan_text.ts";
import { checkNames } from "./protection.ts";

/** The parts of a host that a configuration affects. */
export interface ApplyDeps {
  /** The configuration in force; applying another one sets it. */
  config: Config;
  /** Options whose new values wait for the next start. */
  waiting: readonly string[];
  readonly modules: Modules;
  readonly catalog: Catalog;
  readonly ports: Ports;
  readonly certificates: {
    compare(certificates: CertificatesOptions["certificates"]): Promise<{ readonly changed: readonly string[] }>;
    states(): readonly Pick<CertificateState, "name" | "fingerprint">[];
    configure(options: Omit<CertificatesOptions, "log">, how: { selfSigned?: boolean }): Promise<() => void>;
  };
}

/** The operations of the host that applying a configuration needs, in addition to its parts. */
export interface ApplyOptions {
  /** Reads the current configuration without checking it. */
  read(): Promise<Config>;
  /** Whether certificates are used. */
  readonly isSecure: boolean;
  certificateOptions(config: Config): Omit<CertificatesOptions, "log">;
  /** Switches the log to another configuration. */
  configureLog(config: Config): void;
  warn(unknown: readonly UnknownName[]): void;
  /** Returns the names of all apps; undefined in a process that does not run all modules. */
  apps(): ReadonlySet<string> | undefined;
  announce(event: string, data: unknown): void;
  readonly log: Log;
}

/** A new configuration that was read and checked, with its plan. */
interface Prepared extends Plan {
  readonly next: Config;
  /** Switches the catalog back to the previous configuration. */
  readonly forget: () => void;
}

/**
 * Returns the plan that `applyConfig` would carry out.
 * @throws {ModhostError} CONFIG_*, OPTION_INVALID, MODULE_*: the new configuration is wrong
 */
export async function planConfig(parts: ApplyDeps, options: ApplyOptions): Promise<ConfigPlan> {
  return (await previewConfig(parts, options)).plan;
}

/**
 * Returns the plan, and the names in the new configuration that nothing reads.
 * @throws {ModhostError} as `planConfig`
 */
export async function previewConfig(
  parts: ApplyDeps,
  options: ApplyOptions,
): Promise<{ readonly plan: ConfigPlan; readonly unknown: readonly UnknownName[] }> {
  const { plan, next, forget } = await prepare(parts, options);
  const unknown = next.unknownNames();
  forget();
  return { plan, unknown };
}

/**
 * Reads the configuration again and applies the differences. Everything that can fail happens
 * before anything is removed, so a failure leaves the host unchanged.
 * @throws {ModhostError} CONFIG_* and what `planConfig` throws; CONFIG_NOT_APPLIED naming the step
 * that failed
 */
export async function applyConfig(parts: ApplyDeps, options: ApplyOptions, progress: Progress): Promise<ConfigPlan> {
  const prepared = await prepare(parts, options);
  const { plan, next, steps, changed, isGone } = prepared;
  progress.planned(plan);
  const previous = parts.config;
  const undo: (() => unknown)[] = [prepared.forget];
  let doing = "planning";
  let finish: () => Promise<void>;
  const begin = (what: string) => {
    doing = what;
  };
  try {
    const before = parts.certificates.states();
    // Modules that load from here on may log the new secrets.
    options.log.mask((text) => next.mask(text));
    parts.config = next;
    undo.push(() => {
      parts.config = previous;
      options.log.mask((text) => previous.mask(text));
    });
    if (options.isSecure) {
      begin("reading the certificates");
      const selfSigned = servesHttps(next);
      undo.push(await parts.certificates.configure(options.certificateOptions(next), { selfSigned }));
      progress.step("certificates read");
    }
    const others = changedNames(before, parts.certificates.states());
    begin("opening the ports");
    const ports = await parts.ports.change(next);
    undo.push(() => ports.undo());
    for (const { service, address, port } of plan.ports.filter(({ action }) => action === "open")) {
      progress.step(`${service} opened on ${address} port ${port}`);
    }
    begin("changing the modules");
    const transition = parts.modules.transition(steps, { previous: previous, next });
    undo.push(() => transition.undo());
    await transition.prepare();
    if (options.apps() !== undefined) await checkNames(next, parts.catalog, undefined, isGone);
    for (const { action, module } of plan.modules.filter(({ action }) => action !== "unload")) {
      progress.step(`${action} ${module}`);
    }
    transition.commit();
    finish = async () => {
      ports.commit();
      parts.waiting = plan.waiting;
      options.configureLog(next);
      options.announce("config-changed", { options: changed });
      if (others.length > 0) options.announce("certificates-changed", { names: others });
      progress.inForce();
      for (const line of planLines(plan)) options.log.host.info("Configuration: %s", line);
      await transition.finish();
      options.warn(next.unknownNames(options.apps()));
    };
  } catch (error) {
    for (const step of undo.reverse()) {
      try {
        await step();
      } catch (failure) {
        options.log.host.error("Cannot roll back to the previous configuration: %s", reasonOf(failure));
      }
    }
    previous.hideSecretsOf(next);
    throw new ModhostError("CONFIG_NOT_APPLIED", { step: doing, reason: reasonOf(error) }, { cause: error });
  }
  await finish();
  return plan;
}

/**
 * Refuses a config file that has become empty: perhaps somebody is still writing it.
 * @throws {ModhostError} CONFIG_UNREADABLE
 */
export function assertNotEmptied(next: Pick<Config, "isEmpty" | "file">, previous: Pick<Config, "isEmpty">): void {
  if (!next.isEmpty || previous.isEmpty) return;
  const reason = "it is empty; write {} for a server with all defaults";
  throw new ModhostError("CONFIG_UNREADABLE", { path: next.file, reason });
}

/** Reads and checks the new configuration. Until `forget` is called, the catalog uses it. */
async function prepare(
  { config: previous, modules, catalog, ports, certificates }: ApplyDeps,
  options: ApplyOptions,
): Promise<Prepared> {
  const next = await options.read();
  assertNotEmptied(next, previous);
  next.follow(previous);
  const { live, failed, requested } = modules.facts();
  const before = catalog.wanted();
  const forget = catalog.use(next);
  try {
    next.checkModules(() => catalog.unknownModules());
    const after = catalog.wanted();
    const known = new Set(failed.map(({ name }) => name));
    for (const name of new Set(after.map((wanted) => wanted.name))) {
      // Modules that had failed are tried again later, and may fail again.
      if (catalog.adopted(name) === undefined && !known.has(name)) await catalog.code(name);
    }
    next.check();
    const moved = new Map<string, string>();
    for (const { name } of live) {
      const reason = reasonToMove(modules.codeOf(name), catalog);
      if (reason !== undefined) moved.set(name, reason);
    }
    const served = new Set(certificates.states().map(({ name }) => name));
    const { changed } = options.isSecure
      ? await certificates.compare(options.certificateOptions(next).certificates)
      : { changed: [] };
    const planned = planOf({
      previous: previous,
      next,
      live,
      failed,
      requested: requested,
      wanted: { previous: before, next: after },
      moved,
      isDisabled: (name, host) => catalog.isDisabled(name, host),
      ports: ports.difference(next),
      certificates: changed.filter((name) => served.has(name)),
    });
    for (const name of planned.plan.waiting) next.pin(name, previous);
    const { load, retry, exchange } = planned.steps;
    const apps = options.apps();
    // Only without new modules are all options and all apps known already.
    if (apps !== undefined && load.length + retry.length + exchange.size === 0) {
      await checkNames(next, catalog, apps, planned.isGone);
    }
    return { ...planned, next, forget };
  } catch (error) {
    forget();
    // The error may quote the new secrets.
    previous.hideSecretsOf(next);
    throw error;
  }
}

type Served = readonly Pick<CertificateState, "name" | "fingerprint">[];

/** Returns the names whose certificates differ, or that have one for the first time. */
function changedNames(previous: Served, next: Served): string[] {
  const known = new Map(previous.map(({ name, fingerprint }) => [name, fingerprint]));
  return next.filter(({ name, fingerprint }) => known.get(name) !== fingerprint).map(({ name }) => name);
}

/**
 * Returns why the new configuration requires that the module's code is evaluated again. A module
 * that can no longer be found keeps its code.
 * @throws {ModhostError} OPTION_INVALID for a grant that contains what belongs to the server
 */
function reasonToMove(code: ModuleCode | undefined, catalog: Catalog): string | undefined {
  if (code?.source.file === undefined) return undefined;
  const setting = catalog.changedSetting(code);
  if (setting !== undefined) {
    catalog.assertRights(code);
    return setting;
  }
  try {
    return catalog.locate(code.source.name).file === code.source.file ? undefined : "its file is a different one";
  } catch {
    return undefined;
  }
}

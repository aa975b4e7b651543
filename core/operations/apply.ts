/** A changed configuration put in force while the host runs: as a whole, or not at all. */
import { isDeepStrictEqual } from "node:util";
import type { Config, UnknownName } from "../config/index.ts";
import type { Catalog } from "../module/catalog.ts";
import type { ModuleCode } from "../module/code.ts";
import type { Modules } from "../module/lifecycle.ts";
import type { Ports } from "../ports/ports.ts";
import type { CertificatesOptions } from "../tls/index.ts";
import type { CertificateState, ConfigPlan } from "../types.ts";
import { ModhostError, reasonOf } from "../util/errors.ts";
import type { Log } from "../util/log.ts";
import type { Progress } from "./change.ts";
import { type Plan, planOf } from "./plan.ts";
import { planLines } from "./plan_text.ts";

/** The parts of a host that a configuration concerns. */
export interface ApplyDeps {
  /** What is in force; set when it is another one. */
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

/** What is asked of the host beside its parts. */
export interface ApplyOptions {
  /** The configuration as it is now; nothing of it is checked. */
  read(): Promise<Config>;
  /** Certificates are served. */
  readonly isSecure: boolean;
  certificateOptions(config: Config): Omit<CertificatesOptions, "log">;
  /** The log goes by another configuration. */
  configureLog(config: Config): void;
  warn(unknown: readonly UnknownName[]): void;
  announce(event: string, data: unknown): void;
  readonly log: Log;
}

/** A configuration that was read and found good, and the plan of it. */
interface Prepared extends Plan {
  readonly next: Config;
  /** The catalog goes by what it went by before. */
  readonly forget: () => void;
}

/**
 * What `applyConfig` would do.
 * @throws {ModhostError} CONFIG_*, OPTION_INVALID, MODULE_*: the new configuration is wrong
 */
export async function planConfig(parts: ApplyDeps, options: ApplyOptions): Promise<ConfigPlan> {
  return (await previewConfig(parts, options)).plan;
}

/**
 * The plan, and the names in the new configuration that nothing reads.
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
 * Reads the configuration anew and puts the difference in force. Everything that can fail is done before anything is
 * taken away: what fails leaves all as it was.
 * @throws {ModhostError} CONFIG_* and what `planConfig` throws; CONFIG_NOT_APPLIED naming the step that failed
 */
export async function applyConfig(parts: ApplyDeps, options: ApplyOptions, progress: Progress): Promise<ConfigPlan> {
  const prepared = await prepare(parts, options);
  const { plan, next, steps, changed } = prepared;
  progress.planned(plan);
  const former = parts.config;
  const undo: (() => unknown)[] = [prepared.forget];
  let doing = "planning";
  let finish: () => Promise<void>;
  const begin = (what: string) => {
    doing = what;
  };
  try {
    const before = parts.certificates.states();
    // Those that are made now may speak of the new secrets.
    options.log.mask((text) => next.mask(text));
    parts.config = next;
    undo.push(() => {
      parts.config = former;
      options.log.mask((text) => former.mask(text));
    });
    if (options.isSecure) {
      begin("reading the certificates");
      const selfSigned = !isDeepStrictEqual(next.value("https_ports"), []);
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
    const transition = parts.modules.transition(steps, { former, next });
    undo.push(() => transition.undo());
    await transition.prepare();
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
      options.warn(next.unknownNames());
    };
  } catch (error) {
    for (const step of undo.reverse()) {
      try {
        await step();
      } catch (failure) {
        options.log.host.error("Going back to the former configuration: %s", reasonOf(failure));
      }
    }
    former.hideSecretsOf(next);
    throw new ModhostError("CONFIG_NOT_APPLIED", { step: doing, reason: reasonOf(error) }, { cause: error });
  }
  await finish();
  return plan;
}

/** Reads and checks; until `forget`, the catalog goes by the new configuration. */
async function prepare(
  { config: former, modules, catalog, ports, certificates }: ApplyDeps,
  options: ApplyOptions,
): Promise<Prepared> {
  const next = await options.read();
  next.follow(former);
  const { live, failed, asked } = modules.facts();
  const before = catalog.wanted();
  const forget = catalog.use(next);
  try {
    const after = catalog.wanted();
    const known = new Set(failed.map(({ name }) => name));
    for (const name of new Set(after.map((wanted) => wanted.name))) {
      // What had failed is tried again later, and may fail again.
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
      former,
      next,
      live,
      failed,
      asked,
      wanted: { former: before, next: after },
      moved,
      isDisabled: (name, host) => catalog.isDisabled(name, host),
      ports: ports.difference(next),
      certificates: changed.filter((name) => served.has(name)),
    });
    for (const name of planned.plan.waiting) next.hold(name, former);
    return { ...planned, next, forget };
  } catch (error) {
    forget();
    // The error may quote them.
    former.hideSecretsOf(next);
    throw error;
  }
}

type Served = readonly Pick<CertificateState, "name" | "fingerprint">[];

/** Names that have another certificate, or one at last. */
function changedNames(former: Served, next: Served): string[] {
  const known = new Map(former.map(({ name, fingerprint }) => [name, fingerprint]));
  return next.filter(({ name, fingerprint }) => known.get(name) !== fingerprint).map(({ name }) => name);
}

/** Why the module's code is evaluated anew, by the new configuration; one that is not found any more stays. */
function reasonToMove(code: ModuleCode | undefined, catalog: Catalog): string | undefined {
  if (code?.source.file === undefined) return undefined;
  if (!catalog.isInPlace(code)) return "modules_isolated";
  try {
    return catalog.locate(code.source.name).file === code.source.file ? undefined : "its file is another one";
  } catch {
    return undefined;
  }
}

/**
 * The data that an instance of an isolated module is made from: its options, and facts of the host.
 */
import type { InstanceOwner } from "../module/code.ts";
import type { Incidents } from "../module/incidents.ts";
import type { ModuleContext } from "../module/module_context.ts";
import type { ModuleRights } from "../module/rights.ts";
import {
  type Authority,
  DATA,
  grantedVariables,
  isWithin,
  limitsOf,
  type ModuleLimits,
  optionsOfModules,
  type Permission,
  type PermissionLedger,
  realPath,
} from "../permissions/index.ts";
import type {
  ModulePermissions,
  ModuleState,
  OptionDeclaration,
  OptionDeclarations,
  PermissionKind,
} from "../types.ts";
import { moduleName } from "../util/module_name.ts";
import { isOwnVariable } from "../util/own_variables.ts";
import type { WorkerTask } from "./messages.ts";
import type { OutsideNetwork } from "./network/broker.ts";
import type { ModulePorts } from "./network/module_ports.ts";
import { readablePaths } from "./policy.ts";
import { isNamedFor, isNeeded } from "./rules.ts";

export interface IsolationDeps {
  readonly context: ModuleContext;
  readonly ledger: PermissionLedger;
  readonly incidents: Incidents;
  /** Set in tests: answers connections in place of other hosts. */
  readonly outside?: OutsideNetwork | undefined;
  /** The ports that sandboxed modules listen on. */
  readonly ports: ModulePorts;
  hostsOf(name: string): readonly string[];
  /** Returns the seconds in which the requests of a leaving module have to end. */
  grace(): number;
  /** Called when the worker of an instance has ended without a request to do so. */
  ended(owner: InstanceOwner, reason: string): void;
  /**
   * Replaces an instance by a fresh one. Requests go to the old one until the fresh one is ready;
   * then the old one finishes its requests and ends. Rejects if the fresh one fails.
   */
  retire(owner: InstanceOwner): Promise<void>;
}

/** The part of its memory that the heap of a module with limits may take. */
const HEAP_SHARE = 0.75;

/** Returns the limits of a module. An isolated one has none unless they are set. */
export function limitsFor({ run, settings }: ModuleRights): ModuleLimits | undefined {
  return run === "sandboxed" ? limitsOf(settings) : settings.limits;
}

/** Returns the maximum number of bytes of the heap of a worker or sandbox. */
export function heapOf({ context }: IsolationDeps, { rights }: Pick<IsolatedRights, "rights">): number {
  const heap = Number(context.config.value("isolated_heap"));
  const { memory = Number.POSITIVE_INFINITY } = limitsFor(rights) ?? {};
  return Math.min(heap, memory * HEAP_SHARE);
}

/** The rights of an isolated or sandboxed module, and what decides about their use. */
export interface IsolatedRights {
  readonly rights: ModuleRights;
  readonly authority: Authority;
}

/** Options that `module.http_url` needs, in addition to `http_external_url` and `http_paths`. */
const urlOptions: ReadonlySet<string> = new Set(["http_default_host"]);

/** Whether any module may read an option: those of the host and of HTTP, without their secrets. */
function isPublic({ owner, secret }: OptionDeclaration & { readonly owner: string }): boolean {
  return (owner === "core" || owner === "http") && secret === undefined;
}

/**
 * Returns the environment variables of a worker. Variables that set options are left out: it gets
 * the options that it may read. With a grant it has only the granted ones, unless it is audited.
 */
export function environment({ rights: { settings } }: Pick<IsolatedRights, "rights">): NodeJS.ProcessEnv {
  const { grant, audit } = settings;
  if (grant !== undefined && !audit) return grantedVariables(grant.env ?? [], process.env);
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !isOwnVariable(name)));
}

/** Counts the variables that the module has got, and those that it declares and has not. */
export function countVariables({ rights, authority }: IsolatedRights, declared: ModulePermissions): void {
  const { grant } = rights.settings;
  for (const item of new Set([...(grant?.env ?? []), ...(declared.env ?? [])])) {
    if (process.env[item] === undefined) continue;
    const permission = { kind: "env", item } as const;
    authority.count(permission, authority.allows(permission));
  }
}

/**
 * Counts a permission that Node.js has refused to a sandboxed module, or of an audited one, that it
 * has used. The module's process reports it. Files that it may read without a grant are left out.
 * So are the folders above them, because Node.js itself looks at those to find files.
 */
export function countReported({ rights, authority }: IsolatedRights, kind: PermissionKind, item: string): void {
  if (rights.run !== "sandboxed") return;
  const path = realPath(item);
  const isFile = kind === "read" || kind === "write";
  const isData = isFile && (item === DATA || isWithin(path, realPath(rights.folders.dataFolder)));
  // One word grants the module all files of its data folder.
  const permission: Permission = isData ? { kind: "write", item: DATA } : { kind, item };
  const isGranted = authority.allows(permission);
  const isOwn =
    kind === "read" && readablePaths(rights).some((readable) => isWithin(path, readable) || isWithin(readable, path));
  if (isGranted ? rights.settings.audit : !isOwn) authority.count(permission, isGranted);
}

interface OwnTask extends Pick<WorkerTask, "host" | "reloading" | "depends"> {
  /** The options that the module declares. */
  readonly options: OptionDeclarations;
}

/** Returns what an instance is made from. */
export function taskOf(
  name: string,
  { options, ...own }: OwnTask,
  deps: IsolationDeps,
  isolated: IsolatedRights,
): WorkerTask {
  const { context, hostsOf } = deps;
  const { config, loadTimeout, serves } = context;
  const all = config.declarations();
  const isRestricted = isolated.rights.run === "sandboxed";
  const others = isRestricted ? othersOf(name, deps) : [];
  const isHanded = (option: string) => {
    if (optionsOfModules.has(option)) return false;
    if (Object.hasOwn(options, option) || isOptionGranted(isolated, option)) return true;
    const declared = all.get(option);
    // Undeclared options may be secrets of modules that are not loaded.
    if (declared === undefined) return isNamedFor(name, option, "_", others);
    return isRestricted ? isNeeded(option) : isPublic(declared);
  };
  const declarations: Record<string, Record<string, object>> = {};
  for (const [option, { owner, ...declaration }] of all) {
    if (owner !== "core" && isHanded(option)) (declarations[owner] ??= {})[option] = declaration;
  }
  const sources = config.sources(isHanded);
  const { dataFolder } = isolated.rights.folders;
  return {
    ...own,
    hosts: hostsOf(name),
    config: isRestricted ? { ...sources, written: { ...sources.written, data_path: dataFolder } } : sources,
    declarations: declarations as unknown as WorkerTask["declarations"],
    loadTimeout,
    listening: context.listening(),
    states: isRestricted ? context.states().map(shownToSandbox) : context.states(),
    serves,
    restriction: isRestricted ? restrictionOf(isolated, [...all.keys()]) : undefined,
  };
}

/** Whether the operator has granted an option that is not the module's own. */
function isOptionGranted({ rights: { run, settings }, authority }: IsolatedRights, option: string): boolean {
  const { grant, audit } = settings;
  if (run === "sandboxed" && audit) return true;
  if (grant === undefined) return false;
  const isGrantedItself = (item: string) => authority.allows({ kind: "options", item });
  return isGrantedItself(option) || (urlOptions.has(option) && isGrantedItself("http_external_url"));
}

function restrictionOf(isolated: IsolatedRights, declared: readonly string[]): WorkerTask["restriction"] {
  const { settings } = isolated.rights;
  return {
    options: [
      ...new Set([...declared.filter((name) => isOptionGranted(isolated, name)), ...(settings.grant?.options ?? [])]),
    ],
    hasData: isolated.authority.allows({ kind: "write", item: DATA }),
    isAudited: settings.audit,
  };
}

/** Returns the names of the other modules: those that are configured, and those that are loaded. */
export function othersOf(module: string, { context: { config, states } }: IsolationDeps): string[] {
  const enabled = [undefined, ...config.hosts()].flatMap((host) => config.value("modules_enabled", host) ?? []);
  const names = [...(enabled as string[]).map(moduleName), ...states().map(({ name }) => name)];
  return [...new Set(names)].filter((name) => name !== module);
}

/** Leaves out what a module could learn about others: their files, notes and permissions. */
function shownToSandbox({ name, host, status, run, is_late }: ModuleState): ModuleState {
  const late = is_late === undefined ? {} : { is_late };
  return { name, host, status, run, file: undefined, note: undefined, depends: [], holds: {}, ...late };
}
